// Times of the day as text for people.

import { span } from "./format.js";

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

const sameDay = (a, b) => new Date(a).toDateString() === new Date(b).toDateString();

// time formats milliseconds as a local time, with the day unless it is today.
export function time(ms, now = Date.now()) {
  return sameDay(ms, now) ? clock.format(ms) : `${day.format(ms)}, ${clock.format(ms)}`;
}

export const timeOfDay = (ms) => exact.format(ms);

// utc is the title of a local time.
export const utc = (ms) => `${new Date(ms).toISOString().replace("T", " ").slice(0, 19)} UTC`;

let stopped = null; // when the last data came, while there is no connection
export const stop = (at) => { stopped = at; };
export const present = () => stopped ?? Date.now();

export function ago(ms, now = present()) {
  const seconds = Math.max(0, Math.floor((now - ms) / 1000));
  const unit = [86400, 3600, 60, 1].find((size) => seconds >= size); // whole: it changes less often
  return seconds < 2 ? "now" : `${span(seconds - (seconds % unit))} ago`;
}
