/** Whether each source answers now: what `/sources` says of good, slow, broken and partly lost ones. */
import { describe, expect, it } from 'vitest'
import type { InspectionContext } from '../../src/internal/contract/page.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createSubject, createWatched, get, never, SECRET } from './subject.js'
import { context } from './world.js'

const rowOf = (source: string, code: string | null) => ({
  source,
  answered: code === null,
  duration_ms: expect.any(Number),
  code,
  warnings: null,
})

describe('/sources', () => {
  it('asks each source that is there one question, and names none that is not', async () => {
    const inspectors = createFakeInspectors({ contexts: [context()], calls: [], delivery: {} })
    const { router, calls } = createWatched({ inspectors })
    const { status, body } = await get(router, '/sources')
    expect(status).toBe(200)
    expect(body.items).toEqual([rowOf('context_registry', null), rowOf('rpc', null), rowOf('delivery', null)])
    expect(calls.map(({ name }) => name)).toEqual([
      'contextRegistry.listContexts',
      'rpc.listPending',
      'delivery.listNodes',
    ])
  })

  it('says of each that fails why, answers for the others, and leaves the words to the hook', async () => {
    const errors: unknown[] = []
    const { router } = createWatched(
      { onError: (error, place) => errors.push([(error as Error).message, place]) },
      ({ name, proceed }) => {
        if (name.startsWith('rpc')) throw new Error(SECRET)
        if (name.startsWith('registry')) return Promise.reject(new Refusal('unavailable', SECRET))
        if (name.startsWith('deduplicator')) return undefined
        return proceed()
      },
    )
    const { status, body, text } = await get(router, '/sources')
    expect(status).toBe(200)
    expect(text).not.toContain(SECRET)
    const codes = Object.fromEntries(
      body.items.map(({ source, code }: { source: string; code: string }) => [source, code]),
    )
    expect(codes).toMatchObject({
      registry: 'inspector_unavailable',
      rpc: 'internal',
      deduplicator: 'internal',
      history: null,
      context_registry: null,
    })
    expect(errors).toContainEqual([SECRET, { route: '/sources', source: 'rpc' }])
    expect(errors).toHaveLength(3)
  })

  it('says of all that they did not answer in time where there was no time left to ask them', async () => {
    async function ask() {
      let asked = 0
      const { router } = createWatched({
        deadlineMs: 20,
        onError: null,
        // It keeps the process until the time of the request is up, just before the first source is asked.
        now: () => {
          const until = performance.now() + 40
          while (asked === 1 && performance.now() < until);
          asked++
          return Date.now()
        },
      })
      return get(router, '/sources')
    }
    let { status, body } = await ask()
    // On a busy machine its time may be up before it has begun, or before its caller is known.
    while (status !== 200) ({ status, body } = await ask())
    const codes = body.items.map(({ code }: { code: string }) => code)
    expect([status, ...new Set(codes)]).toEqual([200, 'inspector_timeout'])
  })

  it('gives up on one that hangs before the request is over, and tells it so', async () => {
    const signals: AbortSignal[] = []
    const { router } = createWatched({ deadlineMs: 2_000, onError: null }, ({ name, args, proceed }) => {
      if (!name.startsWith('rpc')) return proceed()
      signals.push((args.at(-1) as InspectionContext).signal)
      return never()
    })
    const { status, body } = await get(router, '/sources')
    expect(status).toBe(200)
    expect(body.items).toContainEqual(rowOf('rpc', 'inspector_timeout'))
    expect(body.items).toContainEqual(rowOf('registry', null))
    expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  })

  it('has not answered where a part of it does not, whatever its first page says', async () => {
    const inspectors = createFakeInspectors({ contexts: [context()] })
    const contextRegistry = { ...inspectors.contextRegistry, ping: () => Promise.reject(new Refusal('unavailable')) }
    const router = createSubject({ inspectors: { contextRegistry } as typeof inspectors, onError: null })
    const { body } = await get(router, '/sources')
    expect(body.items).toEqual([rowOf('context_registry', 'inspector_unavailable')])
  })

  it('answers whatever its warnings do, and shows none that it did not say in time', async () => {
    const { contextRegistry } = createFakeInspectors({ contexts: [context()] })
    for (const warnings of [never, () => Promise.reject(new Error(SECRET)), () => [{ code: 'no such' }]]) {
      const inspectors = { contextRegistry: { ...contextRegistry, warnings } } as ReturnType<
        typeof createFakeInspectors
      >
      const { body } = await get(createSubject({ inspectors, onError: null, deadlineMs: 200 }), '/sources')
      expect(body.items).toEqual([rowOf('context_registry', null)])
    }
  })

  it('is another answer where a source has become much slower, and not for a few ms', async () => {
    const { contextRegistry } = createFakeInspectors({ contexts: [context()] })
    let [now, ms] = [1_000_000, 5]
    const ping = () => {
      now += ms
    }
    const inspectors = { contextRegistry: { ...contextRegistry, ping } } as ReturnType<typeof createFakeInspectors>
    const router = createSubject({ inspectors, now: () => now })
    const ask = (etag = '') => get(router, '/sources', { headers: { 'if-none-match': etag } })
    const etag = (await ask()).headers.get('etag') as string
    ms = 60
    expect((await ask(etag)).status).toBe(304)
    ms = 900
    const { status, body } = await ask(etag)
    expect([status, body.items[0].duration_ms]).toEqual([200, 900])
  })
})
