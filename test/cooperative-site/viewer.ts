/** A viewer of a session who reads its event stream when asked to, while time stands still. */
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { afterEach, beforeEach, vi } from 'vitest'
import { event } from '../contract/event-bus.js'
import { TOPIC, type World } from './world.js'

export const START = Date.parse('2026-01-01T00:00:00.000Z')

/** Fake timers and date that only the test advances. */
export const HELD: Parameters<typeof vi.useFakeTimers>[0] = {
  now: START,
  toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout', 'Date'],
}

/** Time that only the test moves, in every test of the file that calls this. */
export function holdTime(): void {
  beforeEach(() => {
    vi.useFakeTimers(HELD)
  })
  afterEach(() => {
    vi.useRealTimers()
  })
}

/** One frame as a client reads it. */
export interface Frame {
  event: string
  id: string | undefined
  data: unknown
}

/** Opens the stream of the world's session as `user`; nothing is read of it before the test says so. */
export async function watch(world: World, user = 'bob', headers: Record<string, string> = {}) {
  const controller = new AbortController()
  const response = await world.relay(
    new Request(`http://relay.test/relay/sessions/${world.session_id}/events`, {
      headers: { authorization: `Bearer ${user}`, ...headers },
      signal: controller.signal,
    }),
  )
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${await response.text()}`)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const frames: Frame[] = []
  const comments: string[] = []
  const retries: number[] = []
  const parser = createParser({
    onEvent: ({ event: name = 'message', id, data }: EventSourceMessage) =>
      frames.push({ event: name, id, data: JSON.parse(data) }),
    onComment: (comment) => comments.push(comment),
    onRetry: (ms) => retries.push(ms),
  })
  const decoder = new TextDecoder()
  let writes = 0
  /** Reads one write; false at the end. */
  async function read(): Promise<boolean> {
    const { done, value } = await reader.read()
    if (done) return false
    writes++
    parser.feed(decoder.decode(value, { stream: true }))
    return true
  }
  return {
    response,
    frames,
    comments,
    retries,
    read,
    controller,
    reader,
    get writes() {
      return writes
    },
    /** Reads to the end. */
    async drain() {
      while (await read());
      return frames
    },
  }
}

/** Publishes the events `from` to `to` where the session listens. */
export const publish = (world: World, from: number, to: number) => {
  for (let n = from; n <= to; n++) world.bus.publish(TOPIC, { ...event(n), site_id: 'notes', name: 'note_changed' })
}

/** Lets promises settle; timers stand still. */
export const flushPromises = async () => {
  for (let n = 0; n < 20; n++) await Promise.resolve()
}
