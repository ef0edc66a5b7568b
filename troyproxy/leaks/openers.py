"""The spellings of a tool call written as text, as data. Nothing here decides.

To guard one more format, add a row: its opener (and closers), the tier, and what follows the opener. Texts are in
canonical form (`formats.canonical`). Prefixes of one family are written out, so that a test can compare all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from troyproxy.leaks.table import Follow, Row, Sort, Tier

_S, _X = Tier.SPECIAL, Tier.MARKUP

_MARKERS: Final = (
    ("F01", _X, Follow.NAME, ("<function=", "(function=")),
    ("F02", _X, Follow.NAME, ("<function(",)),
    ("F02", _X, Follow.CALL, ("<function>",)),
    ("F03", _X, Follow.CALL, ("<tool_call>",)),
    ("F05", _S, Follow.CALL, ("<seed:tool_call>",)),
    ("F06", _S, Follow.CODE, ("<|python_tag|>",)),
    ("F09", _S, Follow.CALL, ("<|python_start|>",)),
    ("F11", _S, Follow.CALL, ("[tool_calls]",)),
    ("F13", _S, Follow.CALL, ("<|tool_call|>",)),
    ("F14", _X, Follow.CALL, ("<function_call>",)),
    ("F15", _X, Follow.CALL, ("<tool_calls>",)),
    ("F16", _S, Follow.CALL, ("<|action_start|><|plugin|>",)),
    ("F16", _S, Follow.CODE, ("<|action_start|><|interpreter|>",)),
    ("F17", _S, Follow.CALL, ("<|tool_calls_begin|>", "<|tool calls begin|>", "<|tool\\_calls\\_begin|>")),
    ("F17", _S, Follow.CALL, ("<|tool_calls|>", "<|tool call begin|>", "<|tool\\_call\\_begin|>")),
    ("F21", _S, Follow.CALL, ("<|tool_calls_section_begin|>", "<|tool_call_begin|>")),
    ("F22", _S, Follow.CALL, ("<|open|>tools<|sep|>",)),
    ("F22", _S, Follow.NAME, ("<|open|>call tool=",)),
    ("F24", _X, Follow.CALL, ("<tool_calls:", "<tool_call:")),
    # with attributes, or with nothing but a blank
    ("F03", _X, Follow.CALL, ("<tool_call ",)),
    ("F14", _X, Follow.CALL, ("<function_call ",)),
    ("F15", _X, Follow.CALL, ("<tool_calls ",)),
    ("F43", _X, Follow.CALL, ("<function_calls ",)),
    ("F25", _S, Follow.CALL, ("<minimax:tool_call>",)),
    ("F26", _S, Follow.CALL, ("]<]minimax[>[<tool_call>", "]<]minimax[>[ <tool_call>", "]<]minimax[>[\n<tool_call>")),
    ("F26", _S, Follow.NAME, ("]<]minimax[>[<invoke name=",)),
    ("F30", _S, Follow.CALL, ("<|channel|>commentary", "<|start|>assistant<|channel|>commentary")),
    ("F30", _S, Follow.NAME, ("<|channel|>analysis to=", "<|start|>assistant<|channel|>analysis to=")),
    ("F30", _S, Follow.NAME, ("<|start|>assistant to=",)),
    ("F31", _S, Follow.CALL, ("<start_function_call>",)),
    ("F32", _S, Follow.CALL, ("<|tool_call>",)),
    ("F33", _S, Follow.CALL, ("<longcat_tool_call>",)),
    ("F34", _S, Follow.CALL, ("<|function_call|>", "<|message_sep|>function call<|role_sep|>")),
    ("F35", _S, Follow.CALL, ("<|start_action|>",)),
    ("F36", _S, Follow.CALL, ("<|tools_prefix|>",)),
    ("F38", _S, Follow.CALL, ("<|tool_call_start|>",)),
    ("F39", _S, Follow.CALL, ("<|message_model|>", "<|content_invoke_tool_json|>")),
    ("F40", _S, Follow.CALL, ("<|tool_call:start|>",)),
    ("F41", _S, Follow.CALL, ("<dots_function_call>",)),
    ("F42", _X, Follow.NAME, ("<function name=",)),
    ("F44", _X, Follow.CALL, ("<invoke>",)),
    ("F45", _X, Follow.CALL, ("<tool-use>", "<tool_use>")),
    ("F46", _X, Follow.CALL, ("<tool_code>",)),
)

# Prefix, format, tier. A bar may come doubled or with a blank behind it; look-alike bars are folded before.
_ANT: Final = "antml" + ":"
INVOKE_PREFIXES: Final = (
    ("", "F43", _X),
    (_ANT, "F43", _S),
    ("steptml:", "F27", _X),
    ("atem:", "F41", _X),
    ("|dsml|", "F19", _S),
    ("|dsml| ", "F19", _S),
    ("||dsml||", "F19", _S),
    ("|gcml|", "F20", _S),
    ("||gcml||", "F20", _S),
    ("|", "F19", _S),
)

# Only at the start of the content: in prose these are words.
_LEADING: Final = (("F34", _S, Follow.CALL, ("function call<|role_sep|>",)),)

_ELEMENTS: Final = (
    *("parameter", "parameters", "invoke", "function", "tool_call", "arg_value"),
    *("tool_calls", "function_calls", "arg_values", "function_call", "param"),
)
_CLOSERS: Final = (
    ("F03", _X, ("</tool_call >", "</tool_calls >", "</function_call >", "</function_calls >")),
    ("F05", _S, ("</seed:tool_call>",)),
    ("F09", _S, ("<|python_end|>",)),
    ("F13", _S, ("<|/tool_call|>",)),
    ("F16", _S, ("<|action_end|>",)),
    ("F17", _S, ("<|tool_calls_end|>", "<|tool_call_end|>")),
    ("F21", _S, ("<|tool_calls_section_end|>",)),
    ("F22", _S, ("<|close|>call<|sep|>", "<|close|>tools<|sep|>", "<|close|>argument<|sep|>")),
    ("F24", _X, ("</tool_call:", "</tool_calls:")),
    ("F25", _S, ("</minimax:tool_call>",)),
    ("F26", _S, ("]<]minimax[>[</tool_call>", "]<]minimax[>[</invoke>")),
    ("F31", _S, ("<end_function_call>",)),
    ("F32", _S, ("<tool_call|>",)),
    ("F33", _S, ("</longcat_tool_call>",)),
    ("F35", _S, ("<|end_action|>",)),
    ("F36", _S, ("<|tools_suffix|>",)),
    ("F37", _X, ("</toolcall>",)),
    ("F39", _S, ("<|end_message|>",)),
    ("F40", _S, ("<|tool_call:end|>", "<|tool_arg:end|>")),
    ("F41", _S, ("</dots_function_call>",)),
    ("F45", _X, ("</tool-use>", "</tool_use>")),
    ("F46", _X, ("</tool_code>",)),
)
_PARTS: Final = (
    ("F12", ("[call_id]", "[args]")),
    ("F16", ("<|action_start|>", "<|plugin|>", "<|interpreter|>")),
    ("F17", ("<|tool_sep|>",)),
    ("F21", ("<|tool_call_argument_begin|>",)),
    ("F22", ("<|open|>", "<|close|>", "<|sep|>")),
    ("F26", ("]<]minimax[>[",)),
    ("F30", ("<|channel|>", "<|constrain|>", "<|message|>", "<|start|>", "<|call|>")),
    ("F32", ('<|"|>',)),
    ("F34", ("<|role_sep|>",)),
    ("F40", ("<|tool_arg:start|>", "<|tool_arg:value|>")),
)
STOPS: Final = (
    *("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<|call|>", "<|end_of_sentence|>", "</s>"),
    *("<|message_sep|>", "<|endoftext|>", "<|return|>", "<|end_of_text|>"),
)
_RESULTS: Final = (
    *("<tool_response>", "<tool_result>", "<tool_results>", "<function_results>", "<function_response>"),
    *("<function_result>", "<tool_output>", "[tool_results]", "<|tool_response>", "<|tool_response|>"),
    *("<|tool_outputs_begin|>", "<|tool_output_begin|>", "<|start_header_id|>", "<|im_start|>"),
    *("<|start_tool_result|>", "<|start|>functions."),
)

# A think block begins; what ends it.
_THINKING: Final = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",
    "[think]": "[/think]",
    "<|start_thinking|>": "<|end_thinking|>",
    "<mm:think>": "</mm:think>",
    "<|channel|>analysis<|message|>": "<|end|>",
    "<|start|>assistant<|channel|>analysis<|message|>": "<|end|>",
}
_ROLES: Final = (
    *("assistant\n", "<|start_header_id|>assistant<|end_header_id|>", "<|im_start|>assistant\n", "<|assistant|>"),
    *("<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"),
)
SECTION: Final = "<|tool_calls_section_begin|>"  # ends the thinking of Kimi K2, closer or not


def openers() -> Iterator[Row]:
    """Yield what begins a call, anywhere in the content."""
    for format_id, tier, follow, texts in _MARKERS:
        for text in texts:
            yield Row(text, Sort.OPENER, format_id, tier, follow)
    yield Row("<toolcall>", Sort.OPENER, "F37", _S, exact="<TOOLCALL>")
    for prefix, format_id, tier in INVOKE_PREFIXES:
        yield Row(f"<{prefix}invoke name=", Sort.OPENER, format_id, tier, Follow.NAME)
        if prefix != "|":
            yield Row(f"<{prefix}function_calls>", Sort.OPENER, format_id, tier)
            yield from _wrapper(prefix, format_id, tier)


def _wrapper(prefix: str, format_id: str, tier: Tier) -> Iterator[Row]:
    if prefix:
        yield Row(f"<{prefix}tool_calls>", Sort.OPENER, format_id, tier)


def leading() -> Iterator[Row]:
    """Yield what begins a call at the start of the content only."""
    for format_id, tier, follow, texts in _LEADING:
        for text in texts:
            yield Row(text, Sort.OPENER, format_id, tier, follow)


def added(texts: tuple[str, ...]) -> Iterator[Row]:
    """Yield rows for an operator's own openers, already canonical."""
    for text in texts:
        yield Row(text, Sort.OPENER, "extra", _X)


def closers() -> Iterator[Row]:
    """Yield what ends a call or one of its parts."""
    for format_id, tier, texts in _CLOSERS:
        for text in texts:
            yield Row(text, Sort.CLOSER, format_id, tier)
    for prefix, format_id, tier in (*INVOKE_PREFIXES, ("minimax:", "F25", _X)):
        for element in _ELEMENTS:
            yield Row(f"</{prefix}{element}>", Sort.CLOSER, format_id, tier)


def stops() -> Iterator[Row]:
    """Yield the tokens that end a turn."""
    return (Row(text, Sort.STOP, tier=_S) for text in STOPS)


def results() -> Iterator[Row]:
    """Yield how a model begins the tool result that it invents."""
    return (Row(text, Sort.RESULT) for text in _RESULTS)


def parts() -> Iterator[Row]:
    """Yield special tokens that stand inside a call."""
    return (Row(text, Sort.PART, format_id, _S) for format_id, texts in _PARTS for text in texts)


def marks() -> Iterator[Row]:
    """Yield the beginnings of elements that are no opener, but whose closers are no orphans."""
    return (Row(text, Sort.MARK) for text in ("<parameter", "<param ", "<arg_value", f"<{_ANT}parameter"))


def thinking() -> Iterator[Row]:
    """Yield the beginnings of think blocks."""
    return (Row(text, Sort.THINK, ends=ends) for text, ends in _THINKING.items())


def thoughts() -> Iterator[Row]:
    """Yield the ends of think blocks that a template may have opened in the prompt."""
    ends = (end for end in _THINKING.values() if end != "<|end|>")
    return (Row(text, Sort.THOUGHT) for text in ends)


def roles() -> Iterator[Row]:
    """Yield headers of the assistant's turn."""
    return (Row(text, Sort.ROLE) for text in _ROLES)
