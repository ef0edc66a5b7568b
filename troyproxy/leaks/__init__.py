"""Tool calls that a model wrote as plain text: formats, detection, suppression, repair. Pure: no I/O, no clock."""
