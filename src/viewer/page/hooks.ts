/** What a part of the page knows of its questions, and when it is drawn again. */
import { useLayoutEffect, useReducer } from 'preact/hooks'
import { type Answer, answerOf, followPulse, isOld, type Pulse, pulse, subscribe } from './answers.js'

// Effects of layout, all of them: the others wait for a frame to be drawn, and what is asked later is answered later.

const useRedraw = () => useReducer((count: number) => count + 1, 0)[1]

/** The answer to `path`; `null` asks nothing. A list comes by the watch where there is one. */
export function useAnswer<T>(path: string | null, isList = false): Answer<T> & { isOld: boolean } {
  const redraw = useRedraw()
  useLayoutEffect(() => (path === null ? undefined : subscribe(path, isList, () => redraw(undefined))), [path])
  useSecond()
  if (path === null) return { value: null, asOf: null, problem: null, isOld: false }
  return { ...(answerOf(path) as Answer<T>), isOld: isOld(path) }
}

/** How the page as a whole stands. */
export function usePulse(): Pulse {
  const redraw = useRedraw()
  useLayoutEffect(() => followPulse(() => redraw(undefined)), [])
  useSecond()
  return pulse()
}

/** Draws again each second, for what grows old by itself. */
function useSecond(): void {
  const redraw = useRedraw()
  useLayoutEffect(() => {
    const timer = setInterval(() => redraw(undefined), 1_000)
    return () => clearInterval(timer)
  }, [])
}
