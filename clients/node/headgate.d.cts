/** A request that was not answered with a decision. */
export class HeadgateError extends Error {
  /** The HTTP status of the answer, if there was one. Frameworks do not send it to your clients. */
  readonly http_status?: number;
}

/** The request is wrong: an unknown rule or token, or a field that is not accepted. */
export class InvalidError extends HeadgateError {
  /** The field of the request that is wrong. */
  readonly field?: string;
}

/** The server or its store does not answer. */
export class UnavailableError extends HeadgateError {
  /** False if the cost was certainly not charged. */
  readonly may_be_charged?: boolean;
  /** Retry-After of the answer. */
  readonly retry_after?: number;
}

/** What was asked for with wait, withReservation or withPermit was denied. */
export class DeniedError extends HeadgateError {
  /** Frameworks answer with it. */
  readonly status: 429;
  /** Infinity means never. */
  readonly retry_after: number;
  readonly answer: Denial;
}

export interface Denial {
  allowed: boolean;
  /** 0 if allowed; Infinity means never. */
  retry_after: number;
}

interface Keyed {
  key: string;
  /** Ends the call. */
  signal?: AbortSignal | undefined;
}

/** The name of a rule, or a limit such as "10/s" if the server allows that. */
export type Target = Keyed & ({ rule: string; limit?: never } | { limit: string; rule?: never });

interface Cost {
  /** Tokens. */
  cost?: number | undefined;
}

interface Headroom {
  /** Tokens, or permits, that must be left afterwards. */
  headroom?: number | undefined;
}

interface MaxWait {
  /** A start up to this many seconds later may be granted. */
  max_wait?: number | undefined;
}

export type TakeRequest = Target & Cost & Headroom & MaxWait & {
  /** Charge whether or not it fits. */
  force?: boolean | undefined;
};

export type AcquireRequest = Keyed & Headroom & { rule: string; ttl?: number | undefined };

/** All durations are seconds. */
export interface Answer extends Denial {
  rule?: string;
  /** The limit that decided. */
  limit: string;
  /** Infinity means unlimited. */
  capacity: number;
  /** Infinity means unlimited. */
  remaining: number;
  reset_after: number;
  /** Of a request with max_wait: the time until its start. */
  wait?: number;
  /** The store is unavailable, and this instance of the server decided. */
  degraded?: true;
  /** Of a rule in shadow mode: whether it would have denied the request. */
  shadow_denied?: boolean;
}

export interface Reservation extends Answer {
  wait: number;
  id: string;
}

export interface Permit extends Denial {
  rule: string;
  permits: number;
  in_use: number;
  ttl: number;
  id: string;
}

export interface Committed extends Omit<Answer, keyof Denial> {
  reserved: number;
  used: number;
  refunded: number;
  charged: number;
}

export interface Options {
  /** One of api.tokens of the server. */
  token?: string | undefined;
  /** Limits a whole call, in seconds; 2 unless said otherwise. */
  timeout?: number | undefined;
  /** The most connections that are open; 10 unless said otherwise. */
  connections?: number | undefined;
  /** An Agent of node:http or node:https, such as one with a CA. */
  agent?: object | undefined;
  /** Sends the requests. */
  fetch?: typeof fetch | undefined;
}

/** Client of one server. It sends each request once. */
export class Client {
  /** url is http://HOST:PORT, https://HOST:PORT or, in Node, unix:/PATH. */
  constructor(url?: string | URL, options?: Options);

  /** Takes tokens of a key. With max_wait, wait answer.wait seconds before you use the grant. */
  take(request: TakeRequest): Promise<Answer>;

  /** Takes all requests, or none. */
  takeAll(
    requests: readonly (Target & Cost & Headroom)[], options?: { signal?: AbortSignal | undefined },
  ): Promise<Denial & { results: Answer[] }>;

  /** Reports the state of a key. Nothing is charged. */
  peek(request: Target & Headroom): Promise<Answer & { limits: Answer[] }>;

  /** Returns tokens to a key. */
  refund(request: Target & Cost): Promise<Answer>;

  /** Takes an estimated cost. Commit the id with the cost that was used. */
  reserve(request: Target & Cost & MaxWait): Promise<Reservation>;

  /** Settles a reservation at the cost that was used; 0 cancels it. Call it once. */
  commit(id: string, cost: number): Promise<Committed>;

  /**
   * Takes tokens, and waits until they may be used. Throws a DeniedError if that is not within
   * max_wait seconds. If signal is aborted, the tokens are given back, unless another caller has
   * booked after them.
   */
  wait(request: Target & Cost & MaxWait): Promise<Reservation>;

  /**
   * Waits as wait does, but without max_wait, it is denied at once. Returns what f returns. f sets
   * used to the cost that was used; without it, the estimate stays charged. If f throws before
   * that, the reservation is cancelled.
   */
  withReservation<T>(
    request: Target & Cost & MaxWait,
    f: (reservation: Reservation & { used: number | null | undefined }) => T | PromiseLike<T>,
  ): Promise<T>;

  /** Acquires a permit of a key. It expires after ttl seconds. */
  acquire(request: AcquireRequest): Promise<Permit>;

  /** Extends a permit to at least ttl seconds from now, 60 unless given. False: it has expired. */
  renew(id: string, ttl?: number): Promise<boolean>;

  /** Releases a permit, after so many seconds. Returns false if it had expired. */
  release(id: string, after?: number): Promise<boolean>;

  /**
   * Acquires a permit, calls f, returns what f returns, and releases the permit, after so many
   * seconds.
   */
  withPermit<T>(
    request: AcquireRequest & { after?: number | undefined },
    f: (permit: Permit) => T | PromiseLike<T>,
  ): Promise<T>;

  /** Resets a key to its initial state under a rule. */
  reset(rule: string, key: string): Promise<void>;
}

/** Returns RateLimit, RateLimit-Policy and, for a denial, Retry-After; nothing for no limit. */
export function headerFields(answer: Answer): Record<string, string>;

/** Returns the key of an address under a rule with `key: ip`; IPv6 addresses count by their /64. */
export function ipKey(address: string): string;
