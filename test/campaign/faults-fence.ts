/** Which instance of a client spoke for it when, as far as a history can tell. */
import { callsOf, grouped, isRefused, type Operation } from './faults-history.js'

interface Word {
  user_id: string
  client_id: string
  instance_id: string
}

export interface Fence {
  /** Whether another instance had certainly connected before. */
  isStale(word: Word, from: number): boolean
  /** Whether another instance may have connected by `to`, or this one not yet at `from`. */
  mayBeStale(word: Word, from: number, to: number): boolean
  /** When the instance began to connect. */
  since(word: Word): number
}

export function createFence(operations: readonly Operation[]): Fence {
  const connects = grouped(callsOf(operations, 'connect'), ({ call }) => `${call.user_id}\n${call.client_id}`)
  const of = (word: Word) => connects.get(`${word.user_id}\n${word.client_id}`) ?? []
  const own = (word: Word) => of(word).find(({ call }) => call.instance_id === word.instance_id)

  return {
    isStale(word, from) {
      const mine = own(word)
      return of(word).some(({ end, ...other }) => mine && end.type === 'ok' && other.from > mine.to && other.to < from)
    },
    mayBeStale(word, from, to) {
      const mine = own(word)
      if (mine?.end.type !== 'ok' || mine.to > from) return true
      return of(word).some((other) => other !== mine && !isRefused(other) && other.from <= to && other.to >= mine.from)
    },
    since: (word) => own(word)?.from ?? Number.NEGATIVE_INFINITY,
  }
}
