import { DeniedError, HeadgateError, InvalidError, UnavailableError } from "./headgate.cjs";

export { DeniedError, HeadgateError, InvalidError, UnavailableError };

/** A limit. Make one with parse or of, and keep it. */
export class Limit {
  private constructor();

  /** Reads the text form, such as "100/m burst 20" or "5/15m sliding-log". */
  static parse(text: string): Limit;

  /** Makes a limit of its parts. period is in seconds, or a text such as "15m" or "month". */
  static of(parts: {
    count: number;
    period: number | string;
    burst?: number;
    algorithm?:
      | "token-bucket" | "stepped" | "fixed-window" | "sliding-window" | "sliding-log"
      | "calendar-window";
    name?: string;
    /** Of a calendar, such as "Europe/Zurich". */
    zone?: string;
    /** Of a calendar: the day of a month, or the date of a year such as "04-17". */
    anchor?: number | string;
  }): Limit;

  readonly text: string;
  readonly name: string;
  readonly algorithm: string;
  readonly capacity: number;
  toString(): string;
}

/** A limit and the key that it limits. */
export interface Target {
  limit: Limit | string;
  key: string;
}

export interface TakeRequest extends Target {
  /** Tokens, 1 unless said otherwise; 0 charges nothing. */
  cost?: number;
  /** Tokens that must be left afterwards. */
  headroom?: number;
  /** A start time up to this many seconds later may be granted. */
  max_wait?: number;
  /** Charge whether or not it fits. */
  force?: boolean;
}

/** All durations are seconds. */
export interface Answer {
  allowed: boolean;
  limit: string;
  capacity: number;
  remaining: number;
  /** 0 if allowed; Infinity means never. */
  retry_after: number;
  reset_after: number;
  /** Of a grant with max_wait: the time until its start. */
  wait: number;
  /** Of a grant with max_wait: its start in microseconds since the Unix epoch. */
  start_us?: number;
}

export interface StoreOptions {
  /** Begins every key in Redis, "hg:" unless said otherwise; the same in all processes. */
  prefix?: string;
  /** The secret of Store.HashKeys in Go. */
  keySecret?: string | Uint8Array;
  /** Limits each command, in seconds; 2 unless said otherwise. */
  timeout?: number;
}

/** A client of the package redis: one of createClient, createCluster or createSentinel. */
export interface NodeRedisClient {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  sendCommand(...args: any[]): Promise<any>;
}

/** A client of the package ioredis: a Redis or a Cluster. */
export interface IoredisClient {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  callBuffer(...args: any[]): any;
}

/** Decides on a client of redis or ioredis, for one server, a Sentinel or a Cluster. */
export class Store {
  constructor(client: NodeRedisClient | IoredisClient, options?: StoreOptions);

  /** Takes tokens of a key. With max_wait, wait answer.wait seconds before you use the grant. */
  take(request: TakeRequest): Promise<Answer>;

  /** Takes all requests, or none, in one trip. In a Cluster, they need one key. */
  takeAll(requests: readonly TakeRequest[]): Promise<{ allowed: boolean; results: Answer[] }>;

  /** Reports whether one token of a key would be granted. Nothing is charged. */
  peek(request: Target & { headroom?: number }): Promise<Answer>;

  /** Returns tokens to a key. start_us names their grant: before that start, it is cancelled. */
  refund(request: Target & { cost?: number; start_us?: number }): Promise<Answer>;

  /** Puts a key back in its initial state. */
  reset(request: Target): Promise<void>;

  /**
   * Takes tokens of a key, and waits until they may be used. Throws a DeniedError if that is not
   * before timeout. Callers wait in line for each key and limit. One that is aborted gives back
   * what it was granted.
   */
  wait(request: Target & {
    cost?: number;
    headroom?: number;
    /** In seconds. */
    timeout?: number;
    signal?: AbortSignal;
  }): Promise<Answer>;
}
