"""The admin API under ``/api``: one module per resource, behind the admin token."""
