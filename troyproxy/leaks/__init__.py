"""Tool calls that a model wrote as plain text: formats, detection, suppression. Pure: no I/O, no clock."""
