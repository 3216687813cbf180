/** How a message of an application is taken in: retained like any other, then projected onto its site's event bus. */

import * as z from 'zod'
import { withTimeout } from '../../internal/async/deadline.js'
import { guardErrorHook } from '../../internal/async/hook.js'
import { createTracing, withTrace } from '../../internal/contract/channels.js'
import { checkBound, TIMER_MAX_MS } from '../../internal/contract/checks.js'
import type { PublishedEvent, SiteEventBus } from '../../internal/contract/event-bus.js'
import { Id, toTimestamp } from '../../internal/contract/ids.js'
import {
  canonicalStream,
  type Ingest,
  type NotPublishedReason,
  SiteMessage,
  type SiteMessageAnswer,
  siteIdOf,
  siteStream,
} from '../../internal/contract/ingest.js'
import { isDeeperThan } from '../../internal/contract/json.js'
import { JSON_DEPTH } from '../../internal/contract/limits.js'
import { checkFields, parseInput } from '../../internal/contract/options.js'
import type { Principal } from '../../internal/contract/sessions.js'
import { EventName, type SiteRegistry } from '../../internal/contract/sites.js'
import { FairShare, type Place } from '../../internal/fair-share/fair-share.js'
import { Refusal } from '../../internal/refusal.js'

// How an event of a message reaches its bus once, however often the message comes.

/** Where events are published. */
export type PublishingBus = Pick<SiteEventBus, 'publish' | 'publishOnce'>

/** Events remembered of one bus: some megabytes at most. */
const REMEMBERED = 10_000

/** Message ids published on one bus by this process; the largest publisher's are forgotten first. */
class PublishedIds {
  readonly #events = new Map<string, { done: Promise<unknown>; place: Place<string> }>()
  readonly #shares = new FairShare<string>({ entries: REMEMBERED })

  known(key: string): Promise<unknown> | undefined {
    return this.#events.get(key)?.done
  }

  remember(owner: string, key: string, done: Promise<unknown>): void {
    const place = this.#shares.add(owner, key)
    this.#events.set(key, { done, place })
    for (let evicted = this.#shares.excess(place); evicted !== undefined; evicted = this.#shares.excess(place))
      this.forget(evicted)
  }

  forget(key: string): void {
    const event = this.#events.get(key)
    if (!event) return
    this.#events.delete(key)
    this.#shares.remove(event.place)
  }
}

const memories = new WeakMap<object, PublishedIds>()

/**
 * Publishes the event unless it was published before. A bus over several nodes knows that itself if it has
 * `publishOnce`; for any other bus this process remembers its own publications, and concurrent duplicates share one
 * attempt.
 *
 * @returns whether it was published by this call.
 */
export async function publishOnce(
  bus: PublishingBus,
  { owner, topic, event }: { owner: string; topic: string; event: PublishedEvent },
): Promise<boolean> {
  if (bus.publishOnce) return (await bus.publishOnce(topic, event)) !== null
  const memory = memories.get(bus) ?? new PublishedIds()
  memories.set(bus, memory)
  const key = `${topic}\n${event.event_id}`
  const known = memory.known(key)
  if (known) {
    await known
    return false
  }
  const done = (async () => bus.publish(topic, event))()
  memory.remember(owner, key, done)
  try {
    await done
    return true
  } catch (error) {
    memory.forget(key)
    throw error
  }
}

/**
 * Shorter than a publisher's timeout: a publisher without a response retries, and a retained message is then a
 * duplicate.
 */
export const PROJECTION_MS = 2_000

const INGEST = createTracing('relayscope:ingest')

/** Dependencies of `ingestCooperativeSiteMessage`. */
export interface IngestSiteMessageDeps {
  /** The ordinary ingest: identity, instance fencing, deduplication, history. */
  ingest: Ingest
  /** Registry of sites. */
  sites: Pick<SiteRegistry, 'get'>
  /** Event bus that events are published to. */
  bus: PublishingBus
  /**
   * How long finding the site and publishing may take together. Then the bus is unavailable; once it was asked, what it
   * did is unknown. @default 2000
   */
  projectionMs?: number | undefined
  /** Epoch ms. */
  now?: (() => number) | undefined
  /**
   * Called with the error that kept a projection from the bus; the publisher never receives it. Errors that the hook
   * throws are ignored. `null` disables it. @default console.error
   */
  onError?: ((error: unknown) => void) | null | undefined
}

/** A message of an authenticated host. */
export interface HostMessage {
  /** The authenticated host. */
  host: Principal
  /** The message that it sent. */
  message: SiteMessage
}

// Under a host without a user id the message would be retained for a user called "undefined".
const Sender = z.object({ host: z.object({ user_id: Id }) })

type Projection = { event: PublishedEvent } | { reason: NotPublishedReason }

/** The four conditions on an event, in their order. */
async function project(
  { sites, now = Date.now }: IngestSiteMessageDeps,
  { host, message }: HostMessage,
): Promise<Projection> {
  if (message.kind !== 'event') return { reason: 'not_an_event' }
  const siteId = siteIdOf(message.stream)
  if (siteId === null) return { reason: 'not_site_stream' }
  const site = await sites.get(siteId)
  if (!site) return { reason: 'unknown_site' }
  if (site.owner !== host.user_id) return { reason: 'owner_mismatch' }
  const payload = message.payload as { name?: unknown; data?: PublishedEvent['data'] } | null | undefined
  const name = EventName.safeParse(payload?.name)
  if (!name.success) return { reason: 'invalid_event_name' }
  if (site.event_names.length > 0 && !site.event_names.includes(name.data)) return { reason: 'event_not_allowed' }
  return {
    event: {
      event_id: message.message_id,
      name: name.data,
      site_id: siteId,
      published_at: toTimestamp(now()),
      data: payload?.data ?? null,
      ...(message.trace === undefined ? {} : { trace: message.trace }),
    },
  }
}

/** Whether an event is on the bus and, if not, why. */
type Published = Pick<SiteMessageAnswer, 'published' | 'not_published_reason'>

const PUBLISHED: Published = { published: true, not_published_reason: null }
const notPublished = (reason: NotPublishedReason): Published => ({ published: false, not_published_reason: reason })
const UNKNOWN: Published = { published: null, not_published_reason: 'unknown' }

/** Whether a bus that failed with `error` has not published the event and will not. */
const wasNotPublished = (error: unknown) =>
  error instanceof Refusal && error.code !== 'timeout' && error.outcome !== 'unknown'

/** Publishes a retained message. A duplicate is published where its first attempt did not come to that. */
async function publish(
  deps: IngestSiteMessageDeps,
  projectionMs: number,
  sent: HostMessage,
  isDuplicate: boolean,
): Promise<Published> {
  const { user_id: owner } = sent.host
  let isHandedOver = false
  async function attempt(signal: AbortSignal): Promise<Published> {
    const projection = await project(deps, sent)
    if ('reason' in projection) return notPublished(isDuplicate ? 'duplicate' : projection.reason)
    // A publisher that received "not published" must not be contradicted by a site found later.
    signal.throwIfAborted()
    isHandedOver = true
    const topic = siteStream(owner, projection.event.site_id)
    const isNew = await publishOnce(deps.bus, { owner, topic, event: projection.event })
    return isNew || !isDuplicate ? PUBLISHED : notPublished('duplicate')
  }
  try {
    return await withTimeout(attempt, { ms: projectionMs, code: 'timeout' })
  } catch (error) {
    guardErrorHook(deps.onError)(error)
    // Without the bus the outcome of the first attempt is unknown.
    return !isDuplicate && (!isHandedOver || wasNotPublished(error)) ? notPublished('bus_unavailable') : UNKNOWN
  }
}

/**
 * Ingests one message of `host`: prefixes its stream with the host, passes it to the ordinary ingest, and publishes it
 * on the bus if the four conditions hold. A failed publication loses nothing: the message is retained, and the result
 * says why it was not published.
 *
 * @throws Refusal `invalid_input` for a host without a valid `user_id`, and refusals of the ordinary ingest
 * (`stale_instance`, `invalid_input`, `payload_too_large`, `unavailable`); a refused message is never published.
 *
 * @example
 * await ingestCooperativeSiteMessage({ ingest, sites, bus }, { host: { user_id: 'alice' }, message })
 */
export async function ingestCooperativeSiteMessage(
  deps: IngestSiteMessageDeps,
  sent: HostMessage,
): Promise<SiteMessageAnswer> {
  if (!INGEST.hasSubscribers) return ingestMessage(deps, sent)
  const { user_id } = Object(Object(sent).host)
  const { stream, message_id, trace } = Object(Object(sent).message)
  return INGEST.run(
    { user_id, stream, message_id, ...withTrace(trace), published: null },
    () => ingestMessage(deps, sent),
    ({ published }) => ({ published }),
  )
}

async function ingestMessage(deps: IngestSiteMessageDeps, sent: HostMessage): Promise<SiteMessageAnswer> {
  checkFields(sent, ['host', 'message'])
  const { host, message: given } = sent
  const projectionMs = checkBound('projectionMs', deps.projectionMs ?? PROJECTION_MS, TIMER_MAX_MS)
  const { user_id } = parseInput(Sender, { host }).host
  const message = parseInput(SiteMessage, given)
  if (isDeeperThan(message.payload, JSON_DEPTH)) throw new Refusal('invalid_input', 'payload: nested too deep')
  const stream = canonicalStream(user_id, message.stream)
  const { accepted, duplicate, first = null } = await deps.ingest({ ...message, stream, user_id })
  const answer = (published: Published): SiteMessageAnswer => ({
    accepted,
    duplicate,
    ...(duplicate ? { first } : {}),
    message_id: message.message_id,
    stream,
    ...published,
  })
  // The library's ingest throws refusals; a custom one may return `accepted: false`, and has not retained the message
  // either.
  if (!accepted) return answer({ published: false, not_published_reason: null })
  // Another client already used this id: this message is not retained, so it is not published.
  if (duplicate && first !== null && first.client_id !== message.client_id) return answer(notPublished('duplicate'))
  return answer(await publish(deps, projectionMs, { host, message }, duplicate))
}
