// Calls the API of a model with the SDK of its vendor, as the lines of its input say.
import { createInterface } from "node:readline";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { generateText, streamText } from "ai";
import OpenAI from "openai";

const ask = { model: "m", messages: [{ role: "user", content: "hi" }], max_tokens: 23 };

// Each function returns what makes a call, or a stream, and what knows the last event that a client
// needs. Without options, an SDK tries again, and waits, as it does by itself.
const apis = {
  "openai chat": (url, apiKey, options) => {
    const client = new OpenAI({ baseURL: url + "/v1", apiKey, ...options });
    const usage = { stream: true, stream_options: { include_usage: true } };
    return [(stream) => client.chat.completions.create({ ...ask, ...(stream && usage) })];
  },
  "openai responses": (url, apiKey, options) => {
    const client = new OpenAI({ baseURL: url + "/v1", apiKey, ...options });
    const said = { model: "m", input: "hi", max_output_tokens: 23 };
    return [
      (stream) => client.responses.create({ ...said, stream }),
      (event) => event.type === "response.completed",
    ];
  },
  anthropic: (baseURL, apiKey, options) => {
    const client = new Anthropic({ baseURL, apiKey, ...options });
    return [
      (stream) => client.messages.create({ ...ask, stream }),
      (event) => event.type === "message_stop",
    ];
  },
  "ai openai": (url, apiKey, options) =>
    ai(createOpenAI({ baseURL: url + "/v1", apiKey })("m"), options),
  "ai chat": (url, apiKey, options) =>
    ai(createOpenAI({ baseURL: url + "/v1", apiKey }).chat("m"), options),
  "ai anthropic": (url, apiKey, options) =>
    ai(createAnthropic({ baseURL: url + "/v1", apiKey })("m"), options),
  "ai google": (url, apiKey, options) =>
    ai(createGoogleGenerativeAI({ baseURL: url + "/v1beta", apiKey })("m"), options),
};

function ai(model, { maxRetries, timeout }) {
  const options = { model, prompt: "hi", maxOutputTokens: 23, maxRetries };
  const call = async (stream) => {
    if (!stream) {
      return generateText({ ...options, abortSignal: timeout && AbortSignal.timeout(timeout) });
    }
    const left = new AbortController();
    const said = { ...options, abortSignal: left.signal, onError() {} };
    const events = streamText(said).fullStream;
    return Object.assign(events, { controller: left });
  };
  return [call];
}

async function run(what, [call, last]) {
  if (["call", "before", "again"].includes(what)) {
    return call(false);
  }
  const events = await call(true);
  for await (const event of events) {
    if (event.type === "error") {
      throw event.error;
    }
    const started = !["start", "start-step"].includes(event.type);
    if ((what === "middle" && started) || (what === "end" && last(event))) {
      break;
    }
  }
  events.controller.abort();
}

for await (const line of createInterface({ input: process.stdin })) {
  const { api, do: what, url, key, at_once: atOnce } = JSON.parse(line);
  const options = { maxRetries: 0, timeout: what === "before" ? 1000 : 30000 };
  const client = apis[api](url, key, what === "again" ? {} : options);
  const calls = Array.from({ length: atOnce }, () => run(what, client));
  const results = await Promise.allSettled(calls);
  const failed = results.filter((r) => r.status === "rejected").map((r) => String(r.reason));
  console.log(JSON.stringify(failed));
}
