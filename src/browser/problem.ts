/** The one error of the browser client: what the relay refused, or why nothing can be said. */

/** What went wrong, in words a program can act on. */
export class CooperativeSiteError extends Error {
  override readonly name = 'CooperativeSiteError'
  /**
   * The problem code of the relay, e.g. `session_not_found` or `action_not_allowed`; or the client's own:
   * `unreachable` (no answer), `redirected` (never followed), `unexpected_answer` (not what a relay sends).
   */
  readonly code: string
  /** The HTTP status, or `null` where there was no answer. */
  readonly status: number | null
  /** `unknown`: the action may or may not have run. */
  readonly outcome: 'unknown' | undefined

  constructor(code: string, status: number | null, outcome?: 'unknown', options?: ErrorOptions) {
    super(status === null ? code : `${code} (${status})`, options)
    this.code = code
    this.status = status
    this.outcome = outcome
  }
}

// A problem is at most 2 KiB and a result at most 1 MiB; beyond this it is no answer of a relay.
const ANSWER_BYTES = 2_097_152

/** The JSON object that `response` carries, or `undefined` when it carries anything else. */
export async function readObject(response: Response): Promise<Record<string, unknown> | undefined> {
  const text = new TextDecoder()
  const reader = response.body?.getReader()
  let body = ''
  try {
    for (let bytes = 0; reader; ) {
      const { done, value } = await reader.read()
      if (done) break
      bytes += value.byteLength
      if (bytes > ANSWER_BYTES) return void (await reader.cancel())
      body += text.decode(value, { stream: true })
    }
    const value: unknown = JSON.parse(body)
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** The error that an answer other than 200 is. In a browser a redirect that was not followed has no status. */
export async function toError(response: Response): Promise<CooperativeSiteError> {
  const { status, type } = response
  if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    await response.body?.cancel()
    return new CooperativeSiteError('redirected', status || null)
  }
  const problem = await readObject(response)
  const code = typeof problem?.code === 'string' ? problem.code : 'unexpected_answer'
  return new CooperativeSiteError(code, status, problem?.outcome === 'unknown' ? 'unknown' : undefined)
}
