import { Client } from "./headgate.cjs";

export interface FakeRequest {
  rule?: string;
  limit?: string;
  key?: string;
  cost?: number;
  [field: string]: unknown;
}

/** A Client for tests, without a server: it grants everything that decide does not deny. */
export class FakeClient extends Client {
  /**
   * decide returns what differs from a grant, such as { allowed: false, retry_after: 30 }. If it
   * throws, the server is unavailable.
   */
  constructor(decide?: (request: FakeRequest, operation: string) => Record<string, unknown>);

  /** The requests so far. */
  requests: (FakeRequest & { operation: string })[];
}
