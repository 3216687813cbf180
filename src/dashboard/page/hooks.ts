/** What a part of the page knows of its questions, and when it is drawn again: only when it would show something else. */

import { useLayoutEffect, useMemo, useState } from 'preact/hooks'
import {
  type Answer,
  followPollStatus,
  hasInstants,
  isOld,
  queryState,
  subscribe,
  unavailableReason,
} from './answers.js'
import { currentInstant, present } from './fetch-route.js'
import { updateAges } from './parts/value.js'
import { clock } from './words.js'

// Effects of layout, all of them: the others wait for a frame to be drawn, and what is asked later is answered later.

const looks = new Set<() => void>()

function lookAgain(): void {
  for (const look of looks) look()
}

// One timer, so that it is one pass: for what grows old by itself.
setInterval(() => {
  if (document.hidden) return
  lookAgain()
  updateAges()
}, 1_000)
followPollStatus(lookAgain)

/** Returns what `look` reads, and draws again when a value of it differs: it is read after each answer and each second. */
export function useLook<Seen extends readonly unknown[]>(look: () => Seen): Seen {
  const draw = useState({})[1]
  const drawn = look()
  useLayoutEffect(() => {
    const check = () => {
      if (look().some((value, i) => value !== drawn[i])) draw({})
    }
    looks.add(check)
    return () => void looks.delete(check)
  })
  return drawn
}

/** Draws again each `ms`, for what moves with the clock; `Infinity`: never. */
export const useTick = (ms: number) => useLook(() => [Math.floor(clock() / ms)])

export interface QueryAnswer<T> extends Answer<T> {
  /** `null` if nothing is asked. */
  path: string | null
  isOld: boolean
}

/** The answer to `path`; `null` asks nothing, and neither does what the index says is not to be had. */
export function useAnswer<T>(path: string | null): QueryAnswer<T> {
  const problem = path === null ? null : unavailableReason(path)
  const asked = problem ? null : path
  useLayoutEffect(() => (asked === null ? undefined : subscribe(asked)), [asked])
  const state = () => (asked === null ? { value: null, asOf: null, problem } : (queryState(asked) as Answer<T>))
  // A chart of minutes needs the next one, though nothing has happened in it.
  const minute = () => ((state().value as { observed_at?: string } | null)?.observed_at ?? '').slice(0, 16)
  useLook(() => [state().value, state().problem, isOld(asked), minute()])
  return { ...state(), path: asked, isOld: isOld(asked) }
}

/** Instants of several tabs are the same ones: the router keeps few. */
const ROUND_MS = 10_000

/** What `path` answered `ms` ago, asked for once; without a value if that is not recorded, `null` until that is known. */
export function useBefore<T>(path: string | null, ms: number): QueryAnswer<T> | null {
  const instant = currentInstant()
  const [isRecorded] = useLook(() => [hasInstants()])
  const at = useMemo(() => Math.floor(((instant ?? present()) - ms) / ROUND_MS) * ROUND_MS, [instant, isRecorded])
  const answer = useAnswer<T>(path && isRecorded ? `/at/${at}${path}` : null)
  return !isRecorded || answer.value || answer.problem ? answer : null
}
