// Keys as text for people.

import { visible } from "./format.js";

// keyText writes a key so that all of it can be seen.
export const keyText = (key) => (key === "" ? "(empty)" : visible(key));

// sentence begins a text with a capital letter, and ends it with a full stop.
export const sentence = (text) => text && `${text[0].toUpperCase()}${text.slice(1)}${
  /[.!?]$/.test(text) ? "" : "."}`;

const longest = 120;

// brief is the start and the end of a key that is too long for a row.
export function brief(key) {
  const text = keyText(key);
  if (text.length <= longest) return text;
  return `${text.slice(0, longest - 20)}…${text.slice(-12)}`;
}

const kept = 256; // bytes of a denied key that the server keeps; it marks the end of others

// unusable says why nothing can be done with a key of the list of denied keys, or "".
export const unusable = ({ key, foreign }) => cutOff(key) || (foreign
  ? "A program named this key, and the rule makes no such keys: it can have no override" : "");

// cutOff says that a key that was denied is the beginning of a longer one, or "".
export function cutOff(key) {
  return key.endsWith("…") && new TextEncoder().encode(key).length >= kept
    ? "The list has only the first 256 bytes of this key. Enter the whole key to find it" : "";
}
