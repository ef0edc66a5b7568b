"""What may stand around calls: openers, closers, stop tokens, invented results. Spelled canonically, as patterns.

Families mix their wrappers, so no opener is tied to a payload; only `PLAIN` ones are too weak to vouch for a name.
"""

from __future__ import annotations

import re
from typing import Final

# `antml:`, `minimax:`, `steptml:`, `seed:`, `atem:`, `|dsml|`, `||gcml||`, a lone bar, or nothing
PREFIX: Final = r"[|\u2016]{0,2}\s?(?:[a-z]{2,10}[|\u2016:]{1,2}\s?)?"
_SUFFIX: Final = r"(?::[\w-]{1,32})?"
_SECTION: Final = r"(?:tool_calls?|function_calls?)"
# ` id="1" type='function'`, or nothing but a blank
_ATTRIBUTES: Final = r"""(?:\s++(?:[a-z_][\w.-]{0,31}+\s*+=\s*+(?:"[^"<>\n]{0,64}+"|'[^'<>\n]{0,64}+')\s*+){0,4}+)?+"""
_DEEPSEEK: Final = r"<\|tool(?:\\?_| )calls?(?:(?:\\?_| )(?:section(?:\\?_| ))?begin)?\|>"
NAMESPACE: Final = r"\]<\]minimax\[>\["

OPENER: Final = re.compile(
    r"(?P<endless><\|python_tag\|>|<\|python_start\|>|\[tool_calls\]|<\|tool_call\|>|<function_call>"
    r"|<\|action_start\|>|<\|plugin\|>|<\|interpreter\|>|<\|function_call\|>|function call<\|role_sep\|>"
    r"|(?:<\|message_model\|>[^<\n]{0,128})?<\|content_invoke_tool_json\|>)"
    r"|(?P<toolcall><toolcall>)"
    rf"|<{PREFIX}{_SECTION}{_SUFFIX}>|<{_SECTION}{_ATTRIBUTES}>|{_DEEPSEEK}"
    r"|<longcat_tool_call>|<dots_function_call>|<\|start_action\|>|<\|tools_prefix\|>|<\|tool_call_start\|>"
    r"|<start_function_call>|<tool-use>|<tool_use>|<tool_code>|<function>|<\|tool_call:start\|>"
    rf"|<\|open\|>tools<\|sep\|>|{NAMESPACE}\s*<tool_call>"
)
PLAIN: Final = re.compile(r"functools(?=\[)|tool_code\s*\n|>>>|<(?:tools?|response|json|xml)>")
FENCE: Final = re.compile(r"(?:`{3,}|~{3,})(?P<info>[a-z_]{0,10})[ \t]*(?:\n|\Z)")
FENCE_INFOS: Final = frozenset(
    {"", "json", "xml", "tool_call", "tool_calls", "tool_code", "tool", "python", "text", "function"}
)
CLOSER: Final = re.compile(
    rf"</{PREFIX}(?:{_SECTION}|function|invoke){_SUFFIX}\s?>|<\|?/tool_call\|>|<tool_call\|>"
    r"|<\|tool_calls?_(?:section_)?end\|>|<\|tool_call:end\|>|<\|python_end\|>|<\|action_end\|>|<\|end_action\|>"
    r"|<\|tools_suffix\|>|</toolcall>|<end_function_call>|<\|end_message\|>|</longcat_tool_call>"
    r"|</dots_function_call>|</tool-use>|</tool_use>|</tool_code>|</(?:tools?|response|json|xml)>"
    rf"|<\|close\|>(?:call|tools)<\|sep\|>|{NAMESPACE}\s*</(?:invoke|tool_call)>"
)
STOP: Final = re.compile(
    r"<\|(?:eot_id|eom_id|im_end|end|call|return|end_of_sentence|end_of_text|endoftext|message_sep|end_of_msg)\|>"
    r"|</s>|<eos>|<end_of_turn>|<turn\|>"
)
# What a model writes after its call instead of waiting: nothing behind it was ever asked for.
RESULT: Final = re.compile(
    r"<\|?tool_(?:response|results?|outputs?)(?:_begin)?\b|<function_(?:results|response)|\[tool_results\]"
    r"|<start_function_response>|<\|observation\|>|<\|start\|>functions\."
)
# Closers of values: behind a call they show that it was cut at a closer inside one of its values.
VALUE_CLOSER: Final = re.compile(rf"</{PREFIX}(?:parameter|param|arg_value|arg_key)\b")

_CUT_TOKEN: Final = re.compile(
    rf"(?:<[^\s<>]{{0,48}}|<{_SECTION}\s[^<>\n]{{0,512}}|</{PREFIX}(?:{_SECTION}|function|invoke){_SUFFIX}\s"
    r"|[`~]{1,2}|`{3,}[a-z_]{1,10})\Z"
)
_CUT_TAG: Final = re.compile(r"<[^<>\n]{0,256}\Z")
_NAMESPACE_TEXT: Final = "]<]minimax[>["
_BRACKETED: Final = "(function="
_WORDS: Final = ("[tool_calls]", "functools[", "function call<|role_sep|>", "tool_code\n", ">>>")
_CLOSING: Final = (
    *(f"<|{word}|>" for word in ("eot_id", "eom_id", "im_end", "end", "call", "return", "end_of_sentence")),
    *("<|end_of_text|>", "<|endoftext|>", "<|message_sep|>", "<eos>", "<end_of_turn>", "<turn|>"),
    *("<tool_call|>", "<|tool_call_end|>", "<|tool_calls_end|>", "<|tool_calls_section_end|>", "<|tool_call:end|>"),
    *("<|/tool_call|>", "<|python_end|>", "<|action_end|>", "<|end_action|>", "<|tools_suffix|>"),
    *("<end_function_call>", "<|end_message|>", "<|close|>tools<|sep|>", "<|close|>call<|sep|>", "```", "~~~"),
    *("]<]minimax[>[</invoke>", "]<]minimax[>[</tool_call>"),
)


def cut_token(canon: str, at: int) -> bool:
    """Whether the rest of a canonical text, from *at*, may be the beginning of an opener, closer or stop token."""
    if _CUT_TOKEN.match(canon, at):
        return True
    if begins(_BRACKETED, canon, at):
        return len(canon) - at > 1  # a bracket alone is nothing
    return begins(_NAMESPACE_TEXT, canon, at) or any(begins(word, canon, at) for word in _WORDS)


def cut_tag(canon: str, at: int) -> bool:
    """Whether the rest of a canonical text, from *at*, is a tag without its end."""
    return _CUT_TAG.match(canon, at) is not None


def cut_closer(canon: str, at: int) -> bool:
    """Whether the rest of a canonical text, from *at*, is the beginning of a closer or stop token."""
    if canon.startswith("</", at):
        return cut_token(canon, at)
    return any(begins(closer, canon, at) for closer in _CLOSING)


def begins(literal: str, canon: str, at: int) -> bool:
    """Whether the rest of a canonical text, from *at*, is a beginning of *literal* (or all of it)."""
    return len(canon) - at <= len(literal) and literal.startswith(canon[at:])
