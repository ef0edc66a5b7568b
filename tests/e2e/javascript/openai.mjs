// The official client, without retries of its own, against the gateway of OPENAI_BASE_URL: one task after another,
// each through the combo of its name. Prints one JSON object, task → what came back.

import { File } from "node:buffer";
import OpenAI from "openai";

globalThis.File ??= File; // older releases of Node keep it in node:buffer only

const client = new OpenAI({ maxRetries: 0, timeout: 30_000 });
const messages = [{ role: "user", content: "what is the weather in Paris?" }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", parameters } }];

const tasks = {
  async chat() {
    const call = client.chat.completions.create({ model: "chat", messages: [{ role: "user", content: "hello" }] });
    const { data, response } = await call.withResponse();
    return { ...told(response), text: data.choices[0].message.content };
  },
  async streaming() {
    const call = client.chat.completions.create({ model: "streaming", messages, stream: true });
    const { data, response } = await call.withResponse();
    const pieces = [];
    for await (const chunk of data) pieces.push(chunk.choices[0]?.delta?.content ?? "");
    return { ...told(response), text: pieces.join(""), pieces: pieces.filter(Boolean).length };
  },
  async tools() {
    const { data, response } = await client.chat.completions.create({ model: "tools", messages, tools }).withResponse();
    const [{ message, finish_reason }] = data.choices;
    return { ...told(response), finish: finish_reason, call: message.tool_calls[0].function };
  },
  async streamed_tools() {
    const stream = client.chat.completions.stream({ model: "streamed_tools", messages, tools });
    const [{ message, finish_reason }] = (await stream.finalChatCompletion()).choices;
    const { name, arguments: text } = message.tool_calls[0].function;
    return { finish: finish_reason, call: { name, arguments: text } };
  },
  async embeddings() {
    const call = client.embeddings.create({ model: "embeddings", input: ["one", "two"] });
    const { data, response } = await call.withResponse();
    return { ...told(response), sizes: data.data.map((entry) => entry.embedding.length) };
  },
  async completions() {
    const { data, response } = await client.completions.create({ model: "completions", prompt: "hello" }).withResponse();
    return { ...told(response), text: data.choices[0].text };
  },
  async transcription() {
    const file = await OpenAI.toFile(Buffer.from("RIFF\x00\xff\r\n--x\r\nnot really a sound"), "sound.wav");
    const call = client.audio.transcriptions.create({ model: "transcription", file });
    const { data, response } = await call.withResponse();
    return { ...told(response), text: data.text };
  },
  async models() {
    const found = [];
    for await (const model of client.models.list()) found.push(model.id);
    return { found, one: (await client.models.retrieve("demo/chat")).id };
  },
  async refused() {
    const call = client.chat.completions.create({ model: "nobody/nothing", messages });
    return call.then(() => ({}), (error) => ({ name: error.constructor.name, status: error.status, code: error.code }));
  },
  async cut() {
    const stream = await client.chat.completions.create({ model: "demo/cut-4", messages, stream: true });
    try {
      for await (const chunk of stream) void chunk;
    } catch (error) {
      return { raised: error instanceof OpenAI.APIError };
    }
    return { raised: false };
  },
};

function told(response) {
  return { attempts: response.headers.get("x-troy-attempts"), combo: response.headers.get("x-troy-combo") };
}

const results = {};
for (const [name, task] of Object.entries(tasks)) {
  results[name] = await task().catch((error) => ({ error: String(error) }));
}
console.log(JSON.stringify(results));
