/** Holds the client's reading of event streams against an independent decoder. */
import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createEventStreamDecoder, type StreamEvent } from '../../src/internal/relay-client/event-stream.js'
import { codePoint } from '../code-point.js'

/** Every event of `pieces`, and the retries. */
function decode(pieces: string[]): { events: StreamEvent[]; retries: number[] } {
  const events: StreamEvent[] = []
  const retries: number[] = []
  const push = createEventStreamDecoder({ onEvent: (event) => events.push(event), onRetry: (ms) => retries.push(ms) })
  for (const piece of pieces) push(piece)
  return { events, retries }
}

/** The same through `eventsource-parser`. */
function decodeElsewhere(text: string): { type: string; data: string }[] {
  const events: { type: string; data: string }[] = []
  const parser = createParser({ onEvent: ({ event, data }) => events.push({ type: event || 'message', data }) })
  parser.feed(text)
  return events
}

const line = fc.oneof(
  fc.constantFrom('', ':', ': heartbeat', 'data', 'data:', 'data: ', 'event: ready', 'id: a:1', 'id', 'retry: 5000'),
  fc.constantFrom('data:  two spaces', 'data:a:b', ' data: x', 'dataa: x', 'event:', 'retry: 5s', 'data:\u2028\u0000'),
  fc.string({ unit: codePoint }).map((text) => `data: ${text.replaceAll(/[\r\n\ufeff]/g, '')}`),
)
const ending = fc.constantFrom('\n', '\r\n', '\r')

describe('the event stream decoder', () => {
  it('reads what an independent decoder reads, however the stream is cut', () => {
    const stream = fc.array(fc.tuple(line, ending), { maxLength: 30 })
    fc.assert(
      fc.property(stream, fc.array(fc.nat(20), { maxLength: 40 }), (lines, cuts) => {
        const text = `${lines.map(([content, end]) => content + end).join('')}\n\n`
        const pieces: string[] = []
        let rest = text
        for (const cut of cuts) {
          pieces.push(rest.slice(0, cut))
          rest = rest.slice(cut)
        }
        const { events } = decode([...pieces, rest])
        expect(events.map(({ type, data }) => ({ type, data }))).toEqual(decodeElsewhere(text))
      }),
    )
  })

  it('dispatches at a bare carriage return without waiting for the next character', () => {
    expect(decode(['data: x\r\r']).events).toHaveLength(1)
    expect(decode(['data: x\r', '\n\r', '\n']).events).toEqual([{ type: 'message', data: 'x', id: '' }])
  })

  it('keeps the last id, ignores one with NUL, and reports retry', () => {
    const { events, retries } = decode(['id: a:1\nretry: 5000\ndata: x\n\nid: \0\ndata: y\n\nretry: soon\n\n'])
    expect(events.map(({ id }) => id)).toEqual(['a:1', 'a:1'])
    expect(retries).toEqual([5000])
  })

  it.each([
    ['one line', () => 'x'.repeat(1024)],
    ['many lines', () => 'data:\n'.repeat(200)],
  ])('refuses an event that grows without end, in %s', (_what, piece) => {
    const push = createEventStreamDecoder({ onEvent: () => {}, onRetry: () => {} })
    push('data: ')
    expect(() => {
      for (let i = 0; i < 20_000; i++) push(piece())
    }).toThrow(RangeError)
  })
})
