"""The database: tables, one repository per aggregate, and the journals that one writer drains. Behind `ports.Store`."""
