// Asking the server. Addresses are relative: the page lives below a token.

/** What went wrong, in words for the page. */
export class ApiError extends Error {}

let version = null;
const outdated = [];

/** Calls back when an answer is from another version of the workspace than the first one was: numbers of
components may mean others now. */
export const onNewVersion = (listener) => outdated.push(listener);

/** The newest version, as a text: from an answer, or as the server tells it by itself. */
export function announce(newest) {
  if (newest === null || newest === version) return;
  const first = version === null;
  version = newest;
  if (!first) outdated.forEach((listener) => listener());
}

/** The answer to `api/path?parameters`. An AbortError goes through: whoever aborted does not want to hear of it. */
export async function get(path, parameters = {}, { signal, exact = false } = {}) {
  const query = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null),
  ).toString();
  return request(`${path}${query ? `?${query}` : ""}`, { signal }, exact);
}

/** Changes something; the answer says what was done. The header is one that no other site can send. */
export async function post(path, fields) {
  const headers = { "Content-Type": "application/json", "Holdfast-Write": "1" };
  return request(path, { method: "POST", headers, body: JSON.stringify(fields) });
}

async function request(path, how, exact = false) {
  let response;
  let body;
  try {
    response = await fetch(`api/${path}`, { ...how, cache: "no-store" });
    body = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer. Is 'holdfast explore' still running?");
  }
  announce(response.headers.get("Holdfast-Version"));
  let answer;
  try {
    answer = JSON.parse(body, exact ? exactIntegers : undefined);
  } catch {
    throw new ApiError(`The server's answer cannot be read (status ${response.status}).`);
  }
  if (response.status === 403 && (answer?.error ?? "forbidden") === "forbidden") {
    throw new ApiError("This address is not valid any more. Open the one that 'holdfast explore' printed last.");
  }
  if (!response.ok) throw new ApiError(answer?.error ?? `The server answered with status ${response.status}.`);
  return answer;
}

/** Integers beyond 2^53 as their digits, where the browser tells them: a row's values are shown as they are. */
function exactIntegers(key, value, context) {
  if (typeof value !== "number" || !Number.isInteger(value) || Number.isSafeInteger(value)) return value;
  return context?.source && /^-?\d+$/.test(context.source) ? context.source : value;
}

/** One request at a time: a new one ends the one before, whose answer would be out of date. */
export class Latest {
  #controller = null;

  /** A signal for a new request. */
  next() {
    this.stop();
    this.#controller = new AbortController();
    return this.#controller.signal;
  }

  stop() {
    this.#controller?.abort();
    this.#controller = null;
  }
}
