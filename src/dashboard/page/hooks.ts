/** What a part of the page knows of its questions, and when it is drawn again. */
import { useLayoutEffect, useState } from 'preact/hooks'
import {
  type Answer,
  followPulse,
  isOld,
  type Pulse,
  pulse,
  queryState,
  subscribe,
  unavailableReason,
} from './answers.js'

// Effects of layout, all of them: the others wait for a frame to be drawn, and what is asked later is answered later.

function useRedraw(): () => void {
  const draw = useState({})[1]
  return () => draw({})
}

/** The answer to `path`; `null` asks nothing, and neither does what the index says is not to be had. A list comes by the watch where there is one. */
export function useAnswer<T>(path: string | null, isList = false): Answer<T> & { isOld: boolean } {
  const redraw = useRedraw()
  const problem = path === null ? null : unavailableReason(path)
  const asked = problem ? null : path
  useLayoutEffect(() => (asked === null ? undefined : subscribe(asked, isList, redraw)), [asked])
  useSecond()
  if (asked === null) return { value: null, asOf: null, problem, isOld: false }
  return { ...(queryState(asked) as Answer<T>), isOld: isOld(asked) }
}

/** How the page as a whole stands. */
export function usePulse(): Pulse {
  const redraw = useRedraw()
  useLayoutEffect(() => followPulse(redraw), [])
  useSecond()
  return pulse()
}

/** Of all that is drawn again each second: one timer, so that it is one pass. */
const onSecond = new Set<() => void>()
setInterval(() => {
  if (!document.hidden) for (const redraw of onSecond) redraw()
}, 1_000)

/** Draws again each second, for what grows old by itself. */
function useSecond(): void {
  const redraw = useRedraw()
  useLayoutEffect(() => {
    onSecond.add(redraw)
    return () => void onSecond.delete(redraw)
  }, [])
}
