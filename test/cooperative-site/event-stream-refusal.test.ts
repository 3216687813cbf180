/** Who gets no event stream. */
import { describe, expect, it } from 'vitest'
import { holdTime, watch } from './viewer.js'
import { createWorld, type World } from './world.js'

holdTime()

describe('the event stream is refused', () => {
  const ask = (world: World, user: string | null, id = world.session_id) =>
    world.ask(user, 'GET', `/sessions/${id}/events`)

  it('alike for a session that is not there and one that is not the viewer`s', async () => {
    const world = await createWorld()
    const answers = [await ask(world, 'mallory'), await ask(world, 'mallory', 'guessed')]
    const texts = await Promise.all(answers.map((answer) => answer.text()))
    expect(answers.map(({ status }) => status)).toEqual([404, 404])
    expect(texts[0]).toBe(texts[1])
    expect(JSON.parse(texts[0] ?? '').code).toBe('session_not_found')
  })

  it('for a session that is pending or closed, but not for one that is suspended', async () => {
    const world = await createWorld()
    await world.sessions.suspend(world.session_id)
    const suspended = await watch(world)
    await suspended.read()
    expect(suspended.frames[0]?.event).toBe('ready')
    await world.sessions.close(world.session_id)
    const closed = await ask(world, 'bob')
    expect([closed.status, (await closed.json()).code]).toEqual([409, 'session_not_active'])
    const pending = await world.sessions.open({ site_id: 'notes', owner: 'alice' })
    expect((await ask(world, 'alice', pending.session_id)).status).toBe(409)
  })

  it('when its site has gone', async () => {
    const world = await createWorld()
    await world.sites.delete('notes')
    expect((await ask(world, 'bob')).status).toBe(409)
  })
})
