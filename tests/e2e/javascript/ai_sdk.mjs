// The AI SDK with its OpenAI-compatible provider against the gateway of OPENAI_BASE_URL, without retries of its own.
// Prints one JSON object, task → what came back.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embed, generateText, jsonSchema, streamText, tool } from "ai";

const troy = createOpenAICompatible({
  name: "troy",
  baseURL: process.env.OPENAI_BASE_URL,
  apiKey: process.env.OPENAI_API_KEY,
  includeUsage: true,
});
const prompt = "what is the weather in Paris?";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const options = { maxRetries: 0 };

async function streamed(name) {
  const errors = [];
  const stream = streamText({ ...options, model: troy(name), prompt, onError: ({ error }) => errors.push(error) });
  const pieces = [];
  for await (const piece of stream.textStream) pieces.push(piece);
  const tokens = (await stream.totalUsage).totalTokens ?? null;
  return { text: pieces.join(""), finish: await stream.finishReason, errors: errors.length, tokens };
}

const { text, response } = await generateText({ ...options, model: troy("ai_sdk"), prompt: "hello" });
const tools = { get_weather: tool({ inputSchema: jsonSchema(parameters) }) };
const { toolCalls } = await generateText({ ...options, model: troy("demo/chat"), prompt, tools });
const { embedding } = await embed({ ...options, model: troy.embeddingModel("demo/embed"), value: "one" });

console.log(JSON.stringify({
  chat: { text, attempts: response.headers["x-troy-attempts"] },
  tools: toolCalls.map((call) => [call.toolName, call.input]),
  embedding: embedding.length,
  stream: await streamed("demo/chat"),
  cut: await streamed("demo/cut-4"),
}));
