// Calls of the API. The token comes with the link, after #: browsers never send that part to a server.

const TOKEN = "sparsezo.token";

/** The token of this tab: from the link, which loses it, or from before a reload. */
export function takeToken() {
  const given = decodeURIComponent(location.hash.slice(1));
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(TOKEN) ?? "";
}

/** What the service refused, or a connection that failed (status 0). */
export class CallError extends Error {
  constructor(status, code, reason, wait) {
    super(reason);
    this.status = status;
    this.code = code;
    this.wait = wait; // seconds, as the service asks for
  }

  /** Whether the same call may succeed later. */
  get passing() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

const PATIENCE = 20_000; // ms for an answer to a call

export class Api {
  constructor(token) {
    this.token = token;
  }

  async fetch(path, options = {}) {
    let reply;
    try {
      reply = await fetch("/api/" + path, {
        ...options,
        headers: { Authorization: "Bearer " + this.token, ...options.headers },
        signal: AbortSignal.timeout(PATIENCE),
        cache: "no-store",
        credentials: "omit",
      });
    } catch {
      throw new CallError(0, "no-connection", "The service cannot be reached", null);
    }
    if (reply.ok) return reply;
    const said = await reply.json().catch(() => ({}));
    const wait = Number(reply.headers.get("Retry-After")) || null;
    throw new CallError(reply.status, said.error ?? "failed", said.reason ?? `Status ${reply.status}`, wait);
  }

  async get(path) {
    return this.#read(await this.fetch(path));
  }

  async post(path, body) {
    const headers = { "Content-Type": "application/json" };
    return this.#read(await this.fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
  }

  async #read(reply) {
    try {
      return await reply.json();
    } catch {
      throw new CallError(0, "no-connection", "The connection broke off", null);
    }
  }
}
