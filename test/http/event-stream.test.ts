import { createParser, type EventSourceMessage } from 'eventsource-parser'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { encodeFrame, eventStreamReply, HEARTBEAT_FRAME } from '../../src/internal/http/respond.js'
import { codePoint } from '../code-point.js'

/** What an independent reader makes of these bytes. */
function decode(text: string) {
  const events: EventSourceMessage[] = []
  const retries: number[] = []
  const comments: string[] = []
  const errors: unknown[] = []
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onRetry: (ms) => retries.push(ms),
    onComment: (comment) => comments.push(comment),
    onError: (error) => errors.push(error),
  })
  parser.feed(new TextDecoder().decode(new TextEncoder().encode(text)))
  return { events, retries, comments, errors }
}

const nasty = fc.oneof(
  fc.string({ unit: codePoint }),
  fc
    .array(
      fc.constantFrom(
        '\n',
        '\r',
        '\r\n',
        '\0',
        '\ufeff',
        '\u2028',
        '\u2029',
        '\ud800',
        '\udc00',
        ':',
        ' ',
        'data: x',
        'a',
      ),
    )
    .map((parts) => parts.join('')),
)

describe('frames of an event stream', () => {
  it('are read as one equal event by an independent decoder, or cannot be written', () => {
    fc.assert(
      fc.property(nasty, nasty, fc.oneof(nasty, fc.jsonValue()), (event, id, data) => {
        let text: string
        try {
          text = encodeFrame({ event, id, data })
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError)
          expect(event === '' || /[\r\n\0]/.test(event + id) || !event.isWellFormed() || !id.isWellFormed()).toBe(true)
          return
        }
        const { events, errors, retries, comments } = decode(`${text}${encodeFrame({ event: 'next', data: null })}`)
        expect(errors).toEqual([])
        expect(retries).toEqual([])
        expect(comments).toEqual([])
        expect(events.map((each) => each.event)).toEqual([event, 'next'])
        expect(events[0]?.id).toBe(id)
        expect(JSON.parse(events[0]?.data ?? '')).toEqual(JSON.parse(JSON.stringify(data)))
      }),
      { numRuns: 1_000 },
    )
  })

  it('refuse data that is not JSON', () => {
    expect(() => encodeFrame({ event: 'x', data: undefined })).toThrow(TypeError)
    expect(() => encodeFrame({ event: 'x', data: 1n })).toThrow(TypeError)
  })

  it('can set the time to reconnect, and a heartbeat is only a comment', () => {
    const { events, retries, comments } = decode(
      `${HEARTBEAT_FRAME}${encodeFrame({ event: 'x', data: 1, retry: 5_000 })}`,
    )
    expect(retries).toEqual([5_000])
    expect(comments).toEqual([''])
    expect(events).toHaveLength(1)
  })

  it('are sent with headers that forbid storing and transforming', () => {
    const { headers } = eventStreamReply({ next: () => new Promise(() => {}) })
    expect(headers).toEqual({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'x-accel-buffering': 'no',
    })
  })
})
