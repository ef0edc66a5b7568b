"""The wire formats: event-stream framing, JSON as it is found in the wild, and typed views of chat bodies. Pure."""
