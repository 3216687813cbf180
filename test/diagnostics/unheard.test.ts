/**
 * Sources that fail in two ways at the same time: every rejection is handled, or an unhandled one would end the
 * process.
 */
import { expect, it, onTestFinished } from 'vitest'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMetrics } from '../../src/metrics/metrics.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, get } from './subject.js'
import { createWorld } from './world.js'

const byPromise = () => Promise.reject(new Error('down, by promise'))
const atOnce = () => {
  throw new Error('down, at once')
}

/** Collects the rejections that are unhandled after a turn of the event loop. */
function createEar() {
  const unheard: unknown[] = []
  const hear = (error: unknown) => void unheard.push(error)
  process.on('unhandledRejection', hear)
  onTestFinished(() => void process.off('unhandledRejection', hear))
  return async () => {
    await new Promise((resolve) => setTimeout(resolve, 10))
    return unheard
  }
}

it('hears out the versions of all sources', async () => {
  const unheard = createEar()
  const { registry, contextRegistry } = createFakeInspectors(createWorld())
  const inspectors = {
    registry: { ...registry, version: byPromise },
    contextRegistry: { ...contextRegistry, version: atOnce },
  }
  const router = createSubject({ inspectors: inspectors as never })
  expect((await get(router, '/users')).status).toBe(200)
  expect(await unheard()).toEqual([])
})

it('hears out a source that is asked in two ways', async () => {
  const unheard = createEar()
  const { registry } = createFakeInspectors(createWorld())
  const router = createSubject({
    inspectors: { registry: { ...registry, listConnections: byPromise, ping: atOnce } } as never,
  })
  const { status, body } = await get(router, '/sources')
  expect(status).toBe(200)
  expect(body).toMatchObject({ items: [{ source: 'registry', answered: false }] })
  expect(await unheard()).toEqual([])
})

it('hears out a scrape of several scopes', async () => {
  const unheard = createEar()
  const { delivery } = createFakeInspectors(createWorld())
  const getTenant = (scope: string) => (scope === 'a' ? byPromise() : atOnce())
  const metrics = createMetrics({
    inspectors: { delivery: { ...delivery, getTenant } } as never,
    auth: noopAuth(),
    labels: { scopes: ['a', 'b'] },
    onError: null,
  })
  await metrics.collect()
  expect(await unheard()).toEqual([])
})
