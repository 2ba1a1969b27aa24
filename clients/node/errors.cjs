"use strict";

/** A request that was not answered with a decision. */
class HeadgateError extends Error {
  constructor(message, { cause, ...details } = {}) {
    super(message, cause && { cause });
    for (const [name, value] of Object.entries(details)) {
      if (value !== undefined) this[name] = value;
    }
  }
}

/** The request is wrong: an unknown rule or token, or a field that is not accepted. */
class InvalidError extends HeadgateError {}

/** The server or its store does not answer. */
class UnavailableError extends HeadgateError {}

/** What was asked for with wait, withReservation or withPermit was denied. */
class DeniedError extends HeadgateError {
  constructor(answer) {
    const { retry_after: wait } = answer;
    const again = wait === Infinity ? "never granted" : `retry after ${wait} s`;
    // frameworks answer with status
    super(`headgate: denied; ${again}`, { status: 429, retry_after: wait, answer });
  }
}

// Minifiers rename classes.
const errors = { HeadgateError, InvalidError, UnavailableError, DeniedError };
for (const [name, { prototype }] of Object.entries(errors)) {
  Object.defineProperty(prototype, "name", { value: name });
}

/** Refuses a value of a program. */
function wrong(field, value, want) {
  throw new InvalidError(`headgate: ${field} is ${value}; want ${want}`, { field });
}

// imports find names that stand here
module.exports = { HeadgateError, InvalidError, UnavailableError, DeniedError, wrong };
