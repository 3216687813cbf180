/** A listener of the browser client, over a socket or over streams that a test writes by hand. */
import { onTestFinished } from 'vitest'
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import { type HandRelay, startHandRelay, type Visit } from './relay.js'

/** An event of the site as a relay sends it. */
export const event = (seq: number) => ({
  event_id: `m${seq}`,
  name: 'note_changed',
  site_id: 'notes',
  seq,
  published_at: '2026-01-01T00:00:00.000Z',
  data: { n: seq },
})

/** A relay that is closed after the test. */
export async function startRelay(answer?: (visit: Visit, n: number) => void): Promise<HandRelay> {
  const relay = await startHandRelay(answer)
  onTestFinished(() => relay.close())
  return relay
}

/** A network whose every answer is an event stream that the test writes; what is written is read within the turn. */
export function createHandNetwork() {
  const streams: ReadableStreamDefaultController<Uint8Array>[] = []
  const network = {
    url: 'http://relay.test',
    streams,
    /** How many of them the client has let go of. */
    cancelled: 0,
    async fetch() {
      const body = new ReadableStream({
        start: (stream) => void streams.push(stream),
        cancel: () => void network.cancelled++,
      })
      return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
    },
    /** Writes to the newest stream, and lets the client read. */
    async write(text: string) {
      streams.at(-1)?.enqueue(new TextEncoder().encode(text))
      await flushPromises()
    },
  }
  return network
}

/** Lets the client do all that it can do without time. */
export const flushPromises = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Subscribes and writes down everything that is said, in order. */
export function listen(
  relay: { url: string; fetch?: typeof fetch },
  options: { onEvent?: (event: unknown) => void; headers?: () => HeadersInit } = {},
) {
  const { onEvent, headers } = options
  const left = new AbortController()
  onTestFinished(() => left.abort())
  const heard: [string, unknown][] = []
  const waiting: (() => void)[] = []
  const hear = (what: string) => (frame: unknown) => {
    heard.push([what, frame])
    for (const wake of waiting.splice(0)) wake()
    if (what === 'event') onEvent?.(frame)
  }
  const client = createCooperativeSiteClient({
    baseUrl: `${relay.url}/relay/`,
    sessionId: 'a b',
    fetch: relay.fetch,
    headers,
  })
  const ended = client.subscribe({
    onEvent: hear('event'),
    onGap: hear('gap'),
    onReady: hear('ready'),
    onEnd: hear('end'),
    signal: left.signal,
  })
  const hears = async (count: number) => {
    while (heard.length < count) await new Promise<void>((resolve) => waiting.push(resolve))
    return heard.map(([what]) => what)
  }
  return { ended, heard, hears, left }
}
