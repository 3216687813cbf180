/** Pages over several shards at once, in the order of their scores: for tables whose sequence is the same measure everywhere. */
import { type InspectionContext, omittedCount, type Page, type PageQuery, scanLimit } from '../../contract/page.js'
import { type IndexPosition, parseToken, type Run, type Stretch, toToken } from './pages.js'

/** Entries of each shard beyond its share of a page. */
const SPARE = 16

/** One shard on its way: what has been read of it and not been taken yet. */
interface Head<R> {
  readonly shard: number
  /** The score to go on from, as Redis spells it. */
  from: string
  ahead: Run<R>['entries']
  isEnd: boolean
}

/**
 * A page of the shards from `first` to `last`, by score and, where these are the same, by shard; its token is the place of
 * its last entry. One entry of each shard is looked at in any case: no page could go on otherwise.
 *
 * @param read A stretch of one shard; `wanted` is what a page of evenly spread entries takes of it.
 * @throws Refusal `invalid_cursor`, `unavailable` where any of the shards is lost when the page begins: whatever it has may come
 *   before all others, and a page without it would not be the first ones. One that is lost later ends the page early.
 */
export async function mergePage<R>(
  [first, last]: readonly [number, number],
  page: PageQuery,
  ctx: InspectionContext,
  read: (shard: number, from: string, stretch: Stretch) => Promise<Run<R>>,
): Promise<Page<R>> {
  let at: IndexPosition = page.cursor === null ? { shard: first, sequence: 0 } : parseToken(page.cursor, first, last)
  const heads = Array.from({ length: last - first + 1 }, (_, i): Head<R> => {
    const shard = first + i
    // Of a score that several shards have, those up to the last shard have been shown.
    return { shard, from: `${shard > at.shard ? '' : '('}${at.sequence}`, ahead: [], isEnd: false }
  })
  const bound = scanLimit(ctx)
  const items: R[] = []
  let examined = 0
  let omitted = 0
  const more = () => ({ items, next_cursor: toToken(at), has_more: true, examined, ...omittedCount(omitted) })

  for (let round = 0; ; round++) {
    const dry = heads.filter(({ isEnd, ahead }) => !isEnd && ahead.length === 0)
    const budget = Math.floor((bound - examined) / dry.length)
    if (dry.length > 0 && budget < 1 && round > 0) return more()
    const left = page.limit - items.length
    const wanted = Math.min(left, Math.ceil((2 * left) / heads.length) + SPARE)
    const stretch = { round, wanted, budget: Math.max(1, budget) }
    let runs: Run<R>[]
    try {
      runs = await Promise.all(dry.map((head) => read(head.shard, head.from, stretch)))
    } catch (error) {
      // What stands before all that is still to come is an answer; the next page begins with what is lost, and fails.
      if (items.length + omitted === 0 || ctx.signal.aborted) throw error
      return more()
    }
    for (const [i, { entries, isTruncated, examined: cost }] of runs.entries()) {
      const head = dry[i] as Head<R>
      const end = entries.at(-1)
      if (end) head.from = `(${end.position.sequence}`
      head.ahead = [...entries].reverse()
      head.isEnd = !isTruncated || !end
      examined += cost
    }
    while (heads.every(({ isEnd, ahead }) => isEnd || ahead.length > 0)) {
      const next = takeFirst(heads)
      if (!next) return { items, next_cursor: null, has_more: false, examined, ...omittedCount(omitted) }
      at = next.position
      if (next.isBad) omitted += 1
      if (next.record !== undefined) items.push(next.record)
      if (items.length === page.limit && heads.some(({ isEnd, ahead }) => !isEnd || ahead.length > 0)) return more()
    }
  }
}

/** Takes the first of all that is ahead. */
function takeFirst<R>(heads: readonly Head<R>[]): Run<R>['entries'][number] | undefined {
  let best: Head<R> | undefined
  const sequenceOf = ({ ahead }: Head<R>) => ahead.at(-1)?.position.sequence ?? Number.POSITIVE_INFINITY
  for (const head of heads) if (head.ahead.length > 0 && (!best || sequenceOf(head) < sequenceOf(best))) best = head
  return best?.ahead.pop()
}
