/** How a request that has come to a route that only reads is answered: query, inspector, record, page, schema. */
import type { Deadline } from '../async/deadline.js'
import { type Ask, examinable, withRemaining } from '../contract/page.js'
import { fromCursor, listIdentity, toCursor } from './cursor.js'
import { TooLarge, UnacceptableAnswer } from './encode.js'
import { ProblemError } from './problem.js'
import { parseQuery } from './query.js'
import type { PreparedRoute } from './read-route.js'
import { toProblemError } from './refusals.js'
import { firstHalf, type LongList, withoutRecord } from './shorten.js'

/** What became of one request, for the hook that counts it. */
export interface Answer {
  text: string
  filters: Record<string, unknown>
  itemCount: number | null
  complete: boolean | null
}

interface Envelope {
  items?: unknown
  next_cursor?: unknown
  has_more?: unknown
  truncated?: unknown
  completeness?: { complete?: unknown }
}

function completeOf(value: Envelope | undefined): boolean | null {
  if (typeof value?.truncated === 'boolean') return !value.truncated
  return typeof value?.completeness?.complete === 'boolean' ? value.completeness.complete : null
}

/** Holds a page to what its list promises, and puts the wire's cursor in place of the inspector's token. */
function bindPage(page: Envelope, limit: number, identity: (() => string) | undefined): Envelope {
  if (!Array.isArray(page?.items)) throw new UnacceptableAnswer('items: not a list')
  if (page.items.length > limit) throw new UnacceptableAnswer('items: more than the limit')
  if (identity === undefined) return page
  if (page.has_more !== true) return { ...page, next_cursor: null }
  if (typeof page.next_cursor !== 'string') throw new UnacceptableAnswer('next_cursor: missing while has_more is true')
  return { ...page, next_cursor: toCursor(identity(), page.next_cursor) }
}

/** What a matched request brings along. */
export interface MatchedRequest {
  params: Record<string, string>
  search: string
  deployment: { id: string | null; mode: string }
  deadline: Deadline
}

/**
 * Answers a matched, authenticated request: query, inspector, record, schema, in that order.
 *
 * @throws ProblemError whatever goes wrong; its `cause` is for `onError`.
 */
export async function read<Source, View extends { readonly ask: Ask }>(
  { route, query, pageDefault, listed, encode, refusals }: PreparedRoute<Source, View>,
  source: Source,
  request: MatchedRequest,
  view: View,
): Promise<Answer> {
  const { deployment, deadline, params } = request
  const given = parseQuery(query, request.search) as { limit?: number; cursor?: string }
  const { limit = pageDefault, cursor, ...filters } = given
  const identity = () => listIdentity({ route: route.path, params, filters, deployment })
  const token = cursor === undefined ? null : fromCursor(identity(), cursor)
  try {
    return await ask(limit, view)
  } catch (error) {
    // Whatever an inspector throws once its signal has aborted is its way to say that it was stopped.
    const stopped = deadline.signal.aborted && !(error instanceof ProblemError)
    throw stopped
      ? new ProblemError('inspector_timeout', {}, { cause: error })
      : toProblemError(error, 'inspector', refusals)
  }

  async function ask(size: number, asking: View): Promise<Answer> {
    // A copy: what an inspector does to it must change neither the cursor nor what `onAccess` is told.
    const input = { params, filter: { ...filters } as never, page: { limit: size, cursor: token } }
    const asked = route.ask(source, input, asking)
    // What is said without an inspector waits for nobody, however long it takes to say.
    const answered = await (route.needs.length === 0 ? asked : deadline.settle(asked))
    if (answered === null && route.record) throw new ProblemError('not_found')
    return shorten(answered as Envelope, size, asking)
  }

  function finish(envelope: Envelope, size: number): Answer {
    const value = listed ? bindPage(envelope, size, route.page === 'paged' ? identity : undefined) : envelope
    return {
      text: encode(value),
      filters,
      itemCount: Array.isArray(value?.items) ? value.items.length : null,
      complete: completeOf(value),
    }
  }

  /** The answer; of one that is too large, as much as there is room for. */
  async function shorten(envelope: Envelope, size: number, asking: View): Promise<Answer> {
    try {
      return finish(envelope, size)
    } catch (error) {
      if (!(error instanceof TooLarge) || given.limit === undefined) throw error
      const most = listed ? Math.min(size, (envelope as LongList).items.length) : size
      if (most > 1) {
        if (listed && route.tokenOf) return shorten(firstHalf(envelope as LongList, route.tokenOf), size, asking)
        const half = Math.floor(most / 2)
        const remaining = Math.max(half, Math.ceil(examinable(asking.ask) / 2))
        return ask(half, { ...asking, ask: withRemaining(asking.ask, remaining) })
      }
      if (!listed) throw error
      asking.ask.report?.(error)
      return finish(withoutRecord(envelope as LongList), size)
    }
  }
}
