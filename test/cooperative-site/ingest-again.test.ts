/** A message of a site that comes again: on the bus once, or said not to be. */

import { describe, expect, it } from 'vitest'
import { publishOnce } from '../../src/cooperative-site/events/ingest.js'
import { ingestCooperativeSiteMessage } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { event } from '../contract/event-bus.js'
import { changed, createWorld, TOPIC } from './world.js'

describe('a repeated message of a site', () => {
  async function createSender() {
    const world = await createWorld()
    const reader = world.bus.subscribe(TOPIC)
    const send = (message: ReturnType<typeof changed>, bus: object = world.bus) =>
      ingestCooperativeSiteMessage(
        { ...world, ingest: world.facilities.ingest, bus: bus as typeof world.bus },
        { host: { user_id: 'alice' }, message },
      )
    return { ...world, reader, send }
  }
  const failing = (error: unknown) => ({ publish: () => Promise.reject(error) })

  it('is published when the first attempt was only retained', async () => {
    const { facilities, reader, send } = await createSender()
    const message = changed()
    await facilities.ingest({ ...message, user_id: 'alice' })
    expect(await send(message)).toMatchObject({ duplicate: true, published: true, not_published_reason: null })
    expect(await send(message)).toMatchObject({
      duplicate: true,
      published: false,
      not_published_reason: 'duplicate',
      first: { client_id: 'laptop', at: expect.any(String) },
    })
    expect(reader.pending).toBe(1)
  })

  it('is not published for another client than that of the retained message', async () => {
    const { facilities, reader, send } = await createSender()
    const phone = { client_id: 'phone', instance_id: 'phone-1' }
    await facilities.connections.connect({ ...phone, user_id: 'alice', client_type: 'mobile' })
    const message = changed()
    await facilities.ingest({ ...message, ...phone, user_id: 'alice' })
    expect(await send(message)).toMatchObject({ duplicate: true, published: false, first: { client_id: 'phone' } })
    expect(reader.pending).toBe(0)
  })

  it.each([
    ['cannot have gone out', new Refusal('unavailable', 'not sent', { outcome: 'not_run' }), false, 'bus_unavailable'],
    ['may have gone out', new Refusal('unavailable', 'no answer', { outcome: 'unknown' }), null, 'unknown'],
    ['failed for whatever reason', new Error('reset'), null, 'unknown'],
  ])('is published after an event that %s, and reported as published', async (_, error, published, reason) => {
    const { reader, send } = await createSender()
    const message = changed()
    expect(await send(message, failing(error))).toMatchObject({ published, not_published_reason: reason })
    expect(await send(message)).toMatchObject({ duplicate: true, published: true })
    expect(reader.pending).toBe(1)
  })

  it('does not write into the streams of the relay', async () => {
    const { send } = await createSender()
    await expect(send(changed(1, { stream: 'clients/laptop/commands' }))).rejects.toMatchObject({ code: 'forbidden' })
  })
})

describe('a bus without deduplication', () => {
  const createBus = () => {
    const published: unknown[] = []
    let isDown = false
    const bus = {
      async publish(_: string, given: unknown) {
        if (isDown) throw new Error('down')
        return published.push(given)
      },
    }
    const publish = (n: number, owner = 'ann') => publishOnce(bus, { owner, topic: `t-${owner}`, event: event(n) })
    return {
      published,
      publish,
      set isDown(value: boolean) {
        isDown = value
      },
    }
  }

  it('publishes an event again after its publication failed', async () => {
    const bus = createBus()
    bus.isDown = true
    await expect(bus.publish(1)).rejects.toThrow('down')
    bus.isDown = false
    expect([await bus.publish(1), await bus.publish(1)]).toEqual([true, false])
    expect(bus.published).toHaveLength(1)
  })

  it('has the last ten thousand events deduplicated, evicting those of the user with the most', async () => {
    const bus = createBus()
    await bus.publish(0, 'bob')
    for (let n = 0; n <= 10_000; n++) await bus.publish(n)
    expect([await bus.publish(0, 'bob'), await bus.publish(10_000)]).toEqual([false, false])
    expect(await bus.publish(0)).toBe(true)
  })
})
