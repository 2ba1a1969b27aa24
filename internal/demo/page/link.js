// A link that carries the settings of the page, in its fragment, which no server gets:
// #left=1/s+burst+10&right=10/10s+fixed-window&burst=20&rate=10

const names = ["left", "right", "burst", "rate"];

export function linkOf(settings) {
  const pairs = names.map((name) => `${name}=${written(String(settings[name]))}`);
  return `${location.origin}${location.pathname}#${pairs.join("&")}`;
}

const written = (text) => encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%2F", "/");

// read returns the settings of a fragment, or nothing if it carries none. It throws
// what is wrong with them, in one line.
export function read(fragment) {
  if (!fragment.includes("=")) return undefined;
  const settings = {};
  for (const [name, value] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    if (!names.includes(name)) {
      throw new Error(`it names ${quoted(name)}; want left, right, burst and rate`);
    }
    if (name in settings) throw new Error(`it names ${name} twice`);
    if (["burst", "rate"].includes(name) && !isCount(value)) {
      throw new Error(`${name} is ${quoted(value)}; want a whole number from 1 to 10000`);
    }
    settings[name] = value;
  }
  return settings;
}

const isCount = (text) => /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 10_000;

const quoted = (text) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
