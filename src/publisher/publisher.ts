/** Tells the relay that something of a site has changed: for the application that owns the site. */

import { runWithin } from '../async/time-limit.js'
import { sleep } from '../async/timer.js'
import type { FirstTaken } from '../contract/ingest.js'
import type { Json } from '../contract/json.js'
import { ANYTHING, checkOptions, type Shape, TEXT } from '../contract/options.js'
import type { NotPublishedReason, SiteMessage, SiteMessageAnswer } from '../contract/site-messages.js'
import { toSegment } from '../relay-client/answer.js'
import { isFlag, isRecordOf, isText, isWord, nullable } from '../relay-client/shape.js'
import { late, RelayError, toError } from './relay-error.js'
import { checkRuntime, type PublisherRuntime, request } from './runtime.js'

const ATTEMPTS = 3
// Three of them and the longest waits between them are 9.9 s, within the promised 10.
const ATTEMPT_MS = 3_000
const BACKOFF_MS = 200
// Applications that lost one relay at one moment come back over half as much time again.
const JITTER = 0.5

export interface PublishOptions {
  /** The identity of this message: the relay takes it in once, however often it is sent. @default a random UUID */
  messageId?: string | undefined
  signal?: AbortSignal | undefined
}

const PUBLISH: Shape<PublishOptions> = { messageId: TEXT, signal: ANYTHING }

export interface CooperativeSitePublisher {
  /**
   * Publishes one event of a site. Transport errors and 503 are tried again, 3 attempts within 10 s, always with the
   * same `message_id` and each with the runtime's identity of that moment.
   *
   * @returns the relay's answer. The message is retained; `published: false` names why it reached no event bus. After
   * a lost reply it may read `duplicate`: then an earlier attempt was taken in.
   * @throws RelayError with the relay's code (`stale_instance` at once), or `unreachable` or `timeout` when it never
   * answered; the reason of `signal`; whatever the runtime's own functions throw.
   */
  publish(siteId: string, name: string, data?: Json, options?: PublishOptions): Promise<SiteMessageAnswer>
}

export interface CooperativeSitePublisherOptions {
  runtime: PublisherRuntime
}

const isFirst = nullable(isRecordOf<FirstTaken>({ client_id: isText, at: isText }))

const isMessageAnswer = isRecordOf<SiteMessageAnswer>({
  accepted: isFlag,
  duplicate: isFlag,
  first: (value): value is FirstTaken | null | undefined => value === undefined || isFirst(value),
  message_id: isText,
  stream: isText,
  published: nullable(isFlag),
  not_published_reason: nullable(isWord<NotPublishedReason>),
})

const isPassing = (error: unknown) =>
  error instanceof RelayError && (error.status === 503 || error.code === 'unreachable' || error.code === 'timeout')

/**
 * The publisher of a connected runtime. It makes no identity and no connection of its own.
 *
 * @example
 * ```ts
 * import { createCooperativeSitePublisher } from 'relayscope/publisher'
 *
 * const publisher = createCooperativeSitePublisher({
 *   runtime: {
 *     identity: () => ({ client_id: 'notes', instance_id: 'boot-7' }),
 *     baseUrl: 'http://127.0.0.1:8080/relay',
 *     authorize: (headers) => headers.set('authorization', 'Bearer …'),
 *   },
 * })
 * await publisher.publish('notes', 'note_changed', { id: 7 })
 * ```
 */
export function createCooperativeSitePublisher(options: CooperativeSitePublisherOptions): CooperativeSitePublisher {
  checkRuntime(options)
  const { runtime } = options
  async function send(message: Omit<SiteMessage, 'client_id' | 'instance_id'>, signal: AbortSignal) {
    const { client_id, instance_id } = await runtime.identity()
    const answer = await request(runtime, 'POST', '/messages', { ...message, client_id, instance_id }, signal)
    if (answer.status === 409) throw toError(answer, 'stale_instance')
    if (answer.status !== 202 || !isMessageAnswer(answer.body)) throw toError(answer)
    return answer.body
  }

  return {
    async publish(siteId, name, data, publishOptions = {}) {
      checkOptions(publishOptions, PUBLISH)
      const { messageId = crypto.randomUUID(), signal } = publishOptions
      const message = {
        message_id: messageId,
        kind: 'event' as const,
        stream: `sites/${toSegment('the site id', siteId)}/events`,
        payload: data === undefined ? { name } : { name, data },
      }
      for (let attempt = 1; ; attempt++) {
        try {
          return await runWithin((own) => send(message, own), { ms: ATTEMPT_MS, late, signal })
        } catch (error) {
          if (attempt === ATTEMPTS || !isPassing(error)) throw error
        }
        await sleep(BACKOFF_MS * 2 ** (attempt - 1) * (1 + JITTER * Math.random()), signal)
      }
    },
  }
}
