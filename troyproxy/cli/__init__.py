"""The command line: parse, call, print. What a command does is done by the layers below."""
