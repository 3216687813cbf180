/** Holds the bridge of the example to what the metrics tell. */
import { expect, it, vi } from 'vitest'
import { noopAuth } from '../../src/http/auth.js'
import { createMetrics } from '../../src/metrics/index.js'
import { createFakeInspectors } from '../../src/testing/index.js'
import { createWorld } from '../diagnostics/world.js'
import { ROOT } from '../repository/imports.js'

const metrics = createMetrics({ inspectors: createFakeInspectors(createWorld()), auth: noopAuth() })

it('the bridge to a meter observes the collected metrics, with the same names and types', async () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => {})
  const { bridge, server } = await import(`${ROOT}/examples/metrics.mjs`)
  expect(log).toHaveBeenCalledWith(expect.stringMatching(/^scrape /))
  log.mockRestore()
  await server.close()
  const made = new Map<object, { name: string; kind: string; unit?: string }>()
  const make =
    (kind: string) =>
    (name: string, { unit }: { unit?: string }) => {
      const instrument = {}
      made.set(instrument, { name, kind, ...(unit ? { unit } : {}) })
      return instrument
    }
  let callback: ((result: object) => Promise<void>) | undefined
  bridge(metrics, {
    createObservableGauge: make('gauge'),
    createObservableCounter: make('counter'),
    addBatchObservableCallback: (given: typeof callback, instruments: object[]) => {
      callback = given
      expect(instruments).toEqual([...made.keys()])
    },
  })
  const observed: [string | undefined, number, object][] = []
  await callback?.({
    observe: (instrument: object, value: number, labels: object) =>
      observed.push([made.get(instrument)?.name, value, labels]),
  })
  const { families } = await metrics.collect()
  const told = families
    .filter(({ type }) => type !== 'histogram')
    .flatMap(({ name, samples }) => samples.map(({ labels }) => [name, labels]))
  expect(observed.map(([name, , labels]) => [name, labels])).toEqual(told)
  expect([...made.values()]).toContainEqual({ name: 'relayscope_rpc_calls_opened', kind: 'counter' })
  expect([...made.values()]).toContainEqual({ name: 'relayscope_source_duration_seconds', kind: 'gauge', unit: 's' })
})
