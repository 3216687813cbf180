/** Where a walk over jobs goes on: behind the job that it showed last, wherever that stands by then. */
import { Refusal } from '../refusal.js'
import { commandIdOf } from './ids.js'
import type { JobRow } from './jobs.js'
import type { Link } from './queue.js'
import { INDEXES, type Index } from './scripts.js'

export interface Position {
  readonly queue: number
  readonly index: Index
  /** How many of the index stood before it, when it was looked at. */
  readonly place: number
  /** How many of those that the index held at first are still to be shown; `''` where the walk begins it. */
  readonly left: number | ''
  /** The job that was shown last, and its score where it has one; `''` for none. */
  readonly last: string
  readonly score: string
}

export const startOf = (queue: number, index: Index): Position => ({
  queue,
  index,
  place: 0,
  left: '',
  last: '',
  score: '',
})

export function behind(queue: number, name: string, { index, place, left, id, text }: JobRow): Position {
  const at = { queue, index, place: place + 1, left }
  // One that is too long to be shown is too long for a token.
  return commandIdOf(name, id) === null
    ? { ...at, last: '', score: '' }
    : { ...at, last: id, score: text('score') ?? '' }
}

const [COUNT, SCORE] = ['(?:0|[1-9][0-9]{0,9})', '-?(?:inf|[0-9]+(?:\\.[0-9]+)?(?:e[+-]?[0-9]+)?)']
const TOKEN = new RegExp(`^([0-7])/(${COUNT})/(-?${COUNT})?/(${SCORE})?/(${COUNT})/(.+)$`, 's')

const isList = (index: Index) => index === 'wait' || index === 'paused' || index === 'active'

/** @throws Refusal `invalid_cursor` */
export function parseToken(token: string, links: readonly Link[]): Position {
  const [, index, place, left, score = '', length, rest = ''] = TOKEN.exec(token) ?? []
  const last = rest.slice(0, Number(length))
  const queue = links.findIndex(({ name }) => name === rest.slice(Number(length)))
  const at = { queue, index: INDEXES[Number(index)] as Index, place: Number(place), last, score }
  const isPlaced = last === '' || (left !== undefined && isList(at.index) === (score === ''))
  if (queue < 0 || !isPlaced) throw new Refusal('invalid_cursor')
  return { ...at, left: left === undefined ? '' : Number(left) }
}

/** The id of a job and the name of its queue may have any character: how long the first is tells them apart. */
export const tokenOf = ({ queue, index, place, left, score, last }: Position, links: readonly Link[]) =>
  `${INDEXES.indexOf(index)}/${place}/${left}/${score}/${last.length}/${last}${links[queue]?.name}`
