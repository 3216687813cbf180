/** Sliced work continues on runtimes that cancel the timers of an ended request. */
import { afterEach, expect, it, vi } from 'vitest'

afterEach(() => {
  vi.unstubAllGlobals()
  vi.resetModules()
})

/** The module as it is loaded where `setTimeout` can lose timers, and a clock that stands still. */
async function load() {
  const real = globalThis.setTimeout
  const state = { loses: false, now: 0 }
  vi.stubGlobal('setTimeout', (run: () => void, ms: number) => (state.loses ? 0 : real(run, ms)))
  vi.resetModules()
  const turns = await import('../../src/internal/async/turns.js')
  turns.sliceClock.now = () => state.now
  return { state, ...turns }
}

const { signal } = new AbortController()

it('continues after a slice whose timer was lost', async () => {
  const { state, beginSlice, betweenSlices } = await load()
  state.loses = true
  beginSlice()
  state.loses = false
  state.now += 20
  await betweenSlices({ signal })
})

it('continues after other work whose timer was lost', async () => {
  const { state, beginSlice, betweenSlices } = await load()
  beginSlice()
  state.now += 20
  state.loses = true
  const lost = vi.fn()
  void betweenSlices({ signal }).then(lost)
  state.loses = false
  const next = betweenSlices({ signal })
  state.now += 1_000
  await next
  expect(lost).not.toHaveBeenCalled()
})
