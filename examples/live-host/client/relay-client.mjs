/**
 * The client's end of the wire, for a console process and a browser tab alike: it connects, keeps its heart beating,
 * takes commands from its mailbox, acknowledges them, runs them and sends their results back.
 */

// Enough to recognise every command that could still be redelivered, little enough to forget.
const REMEMBERED = 1_000
const RETRY_MS = 500

/** The host has said that another instance of this client has taken over: this one must not come back. */
class Superseded extends Error {}

/**
 * Stays connected to one of the `baseUrls`, after a failure to the next one, until `signal` aborts or another instance
 * takes over.
 *
 * `handlers` maps action names to `async (payload, { command, relay, signal }) => result`, where `signal` aborts when the
 * host cancels the command; one that throws an error with `said`, `{ code, message }`, fails in these words. `live(relay)`
 * is called after each connect; `relay.signal` ends with that connection. `ignores(command)` plays a client that loses a
 * command.
 */
export async function runRelayClient({ baseUrls, signal, ...options }) {
  for (let life = 0; !signal.aborted; life++) {
    try {
      await liveOnce({ baseUrl: baseUrls[life % baseUrls.length], signal, ...options })
    } catch (error) {
      if (error instanceof Superseded) return
    }
    await delay(RETRY_MS, signal)
  }
}

async function liveOnce({ baseUrl, ticket, hello, handlers, live, ignores = () => false, signal }) {
  // A new life, a new instance: the host fences everything that an older one still says.
  const instance_id = crypto.randomUUID()
  const welcome = await request('POST', '/relay/connect', { ...hello, instance_id }, ticket, AbortSignal.timeout(5_000))
  const ended = new AbortController()
  const relay = {
    ...welcome,
    baseUrl,
    signal: AbortSignal.any([signal, ended.signal]),
    send: (method, path, body) => request(method, path, body, welcome.token),
  }

  async function request(method, path, body, bearer, until = relay.signal) {
    const response = await fetch(new URL(path, baseUrl), {
      method,
      headers: { authorization: `Bearer ${bearer}`, ...(body && { 'content-type': 'application/json' }) },
      body: body && JSON.stringify(body),
      // The last word of a page is sent while the page goes.
      keepalive: path === '/relay/disconnect',
      signal: until,
    })
    if (!response.ok) await refuse(response)
    return response.headers.get('content-type')?.startsWith('application/json') ? response.json() : response
  }

  const seen = new Map()
  const running = new Map()
  async function take(command) {
    const { command_id, action, payload } = command
    const path = `/relay/commands/${encodeURIComponent(command_id)}`
    if (ignores(command)) return
    const handler = handlers[action]
    if (!handler) return relay.send('POST', `${path}/ack`, { state: 'refused', reason: 'unknown_action' })
    const cancelled = running.get(command_id) ?? new AbortController()
    running.set(command_id, cancelled)
    try {
      await relay.send('POST', `${path}/ack`, { state: 'acknowledged' })
      // At least once means that it may come again: the work is done once, its answer is sent as often as asked.
      const context = { command, relay, signal: cancelled.signal }
      if (!seen.has(command_id)) seen.set(command_id, outcomeOf(handler(payload, context)))
      if (seen.size > REMEMBERED) seen.delete(seen.keys().next().value)
      const outcome = await seen.get(command_id)
      if (outcome !== undefined) await relay.send('POST', `${path}/result`, outcome)
    } finally {
      running.delete(command_id)
    }
  }

  async function beat() {
    while (!relay.signal.aborted) {
      await delay(welcome.heartbeat_ms, relay.signal)
      if (!relay.signal.aborted) await relay.send('POST', '/relay/heartbeat', {})
    }
  }

  async function read() {
    const mailbox = await relay.send('GET', '/relay/mailbox')
    for await (const { event, data } of framesOf(mailbox.body)) {
      if (event === 'command') take(data).catch(() => {})
      if (event === 'cancel') running.get(data.command_id)?.abort()
    }
  }

  try {
    live?.(relay)
    await Promise.race([read(), beat()])
  } finally {
    ended.abort()
    if (signal.aborted) await request('POST', '/relay/disconnect', {}, welcome.token, AbortSignal.timeout(1_000))
  }
}

async function refuse(response) {
  const { code = 'unreadable' } = await response.json().catch(() => ({}))
  throw code === 'superseded' ? new Superseded() : new Error(`${response.status} ${code}`)
}

async function outcomeOf(work) {
  try {
    return { ok: true, result: await work }
  } catch ({ said, isRepeated }) {
    if (isRepeated) return undefined
    // The error message stays in this client; only an explicit failure is sent.
    return { ok: false, error: said ?? { code: 'handler_error', message: null } }
  }
}

/** The frames of a server-sent event stream. */
async function* framesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const frames = (text + value).split('\n\n')
    text = frames.pop()
    for (const frame of frames) {
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? []
      if (data) yield { event, data: JSON.parse(data) }
    }
  }
}

/** Resolves after `ms`, or at once when `signal` aborts. */
export function delay(ms, signal) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
    function done() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
  })
}
