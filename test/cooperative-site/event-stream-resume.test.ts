/** Gaps that a viewer receives when it resumes a stream. */
import { describe, expect, it } from 'vitest'
import { holdTime, publish, watch } from './viewer.js'
import { createWorld, TOPIC, type World } from './world.js'

holdTime()

describe('the event stream after a reconnection', () => {
  const resumed = async (world: World, id: string) => {
    const viewer = await watch(world, 'bob', { 'last-event-id': id })
    await viewer.read()
    return viewer.frames
  }

  it('reports exactly what was missed in the same epoch, and no gap if nothing was', async () => {
    const world = await createWorld()
    const first = await watch(world)
    await first.read()
    const epoch = first.frames[0]?.id?.split(':')[0]
    publish(world, 1, 5)
    expect(await resumed(world, `${epoch}:5`)).toMatchObject([{ event: 'ready' }])
    expect(await resumed(world, `${epoch}:2`)).toMatchObject([
      { event: 'ready', id: `${epoch}:5` },
      {
        event: 'gap',
        id: `${epoch}:5`,
        data: { reason: 'resume', dropped: 3, dropped_total: 3, first_seq: 3, last_seq: 5 },
      },
    ])
  })

  it.each([
    'other:2',
    'E:9',
    'E:-1',
    'E:01',
    'E',
    ':3',
    'E:',
    'E:9007199254740993',
    'x'.repeat(4_000),
  ])('reports an unknown gap after %j', async (given) => {
    const world = await createWorld()
    publish(world, 1, 3)
    const epoch = world.bus.subscribe(TOPIC).position.epoch
    const frames = await resumed(world, given.replace('E', epoch))
    expect(frames[1]).toMatchObject({
      event: 'gap',
      data: { reason: 'resume', dropped: null, dropped_total: 0, first_seq: null, last_seq: null },
    })
  })
})
