import { describe, expect, it, vi } from 'vitest'
import { KEY } from '../diagnostics/subject.js'
import { callMessage, message, subject } from './subject.js'

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

/** Creates a gate: calls of `pass` wait until `open`. */
function createGate() {
  const waiting: (() => void)[] = []
  return {
    waiting,
    pass: () => new Promise<void>((resolve) => waiting.push(resolve)),
    open: () => {
      for (const letGo of waiting.splice(0)) letGo()
    },
  }
}

/** A router that knows the test's key; its authentication and its records wait for `passed`. */
const knowing = (passed: (isAuth: boolean) => Promise<void> | undefined) => ({
  prefix: '',
  async fetch({ url, headers }: Request) {
    const isAuth = url.endsWith('/capabilities')
    await passed(isAuth)
    if (headers.get('x-admin-key') !== KEY) return Response.json({ code: 'forbidden' }, { status: 403 })
    return Response.json(isAuth ? {} : { items: [], has_more: false })
  },
})

/** What `result` come to, once `open` has been called as often as that takes. */
async function opened<T>(result: readonly Promise<T>[], open: () => void): Promise<T[]> {
  let isOver = false
  const all = Promise.all(result).finally(() => {
    isOver = true
  })
  while (!isOver) {
    open()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return all
}

const statuses = (responses: readonly Response[]) => [...new Set(responses.map(({ status }) => status))]

describe('authentication under load', () => {
  it('serves a client with a key during a flood of clients without one', async () => {
    const { pass, open } = createGate()
    const onError = vi.fn()
    const mcp = subject({ router: knowing(pass), onError, deadlineMs: 60_000 })
    const crowd = Array.from({ length: 1_000 }, () => mcp(message(PING, { 'x-admin-key': 'wrong' })))
    const own = mcp(message(PING))
    expect(statuses(await opened(crowd, open))).toEqual([403])
    expect((await own).status).toBe(200)
    expect(onError).not.toHaveBeenCalled()
  })

  it('is bounded, and fills no log', async () => {
    const { pass, open } = createGate()
    const onError = vi.fn()
    const mcp = subject({ router: knowing(pass), onError, deadlineMs: 60_000 })
    const crowd = Array.from({ length: 4_200 }, () => mcp(message(PING, { 'x-admin-key': 'wrong' })))
    // Callers beyond the queue are rejected immediately; the others wait.
    const places = 64 + 4_096
    expect(statuses(await Promise.all(crowd.slice(places)))).toEqual([503])
    expect(statuses(await opened(crowd.slice(0, places), open))).toEqual([403])
    expect(onError).not.toHaveBeenCalled()
  })

  it('is not blocked by requests that hang', async () => {
    const { pass, open, waiting } = createGate()
    const mcp = subject({ router: knowing((isAuth) => (isAuth ? undefined : pass())), deadlineMs: 60_000 })
    const hanging = Array.from({ length: 40 }, () => mcp(message(callMessage('find_records', { family: 'sites' }))))
    await vi.waitFor(() => expect(waiting).toHaveLength(16), { timeout: 300_000 })
    expect((await mcp(message(PING))).status).toBe(200)
    await opened(hanging, open)
  })
})
