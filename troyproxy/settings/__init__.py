"""Configuration: environment, ``.env`` and YAML file become one frozen value and a snapshot. Opens no socket."""
