/** The sites that a host declares over HTTP. */
import { describe, expect, it } from 'vitest'
import { createSiteRegistry } from '../../src/cooperative-site/index.js'
import { answer } from './answer.js'
import { createWorld } from './world.js'

const definition = {
  mode: 'cooperative',
  event_names: ['note_changed'],
  action_names: ['archive_note'],
  capability_profile: { action_invocation: true },
}

describe('the sites of a host', () => {
  it('are put, read and deleted by their owner', async () => {
    const world = await createWorld()
    const put = await answer(world, 'alice', 'PUT', '/sites/todo', definition)
    expect(put.status).toBe(201)
    expect(put.body).toMatchObject({ site_id: 'todo', owner: 'alice', title: null, ...definition })
    expect((await answer(world, 'alice', 'PUT', '/sites/todo', { mode: 'observe' })).status).toBe(200)
    const got = await answer(world, 'alice', 'GET', '/sites/todo')
    expect(got.status).toBe(200)
    expect(got.body).toMatchObject({
      mode: 'observe',
      action_names: [],
      capability_profile: { action_invocation: false },
    })
    const head = await answer(world, 'alice', 'HEAD', '/sites/todo')
    expect([head.status, head.body]).toEqual([200, null])
    const gone = await answer(world, 'alice', 'DELETE', '/sites/todo')
    expect([gone.status, gone.body, gone.headers.get('cache-control')]).toEqual([204, null, 'no-store'])
    expect((await answer(world, 'alice', 'DELETE', '/sites/todo')).status).toBe(404)
    expect((await answer(world, 'alice', 'GET', '/sites/todo')).body.code).toBe('not_found')
  })

  it('are invisible to other hosts and protected from them', async () => {
    const world = await createWorld()
    const before = await world.sites.get('notes')
    expect((await answer(world, 'mallory', 'GET', '/sites/notes')).status).toBe(404)
    expect((await answer(world, 'mallory', 'DELETE', '/sites/notes')).status).toBe(404)
    const put = await answer(world, 'mallory', 'PUT', '/sites/notes', definition)
    expect([put.status, put.body.code]).toEqual([409, 'owner_mismatch'])
    expect(await world.sites.get('notes')).toEqual(before)
  })

  it.each<[string, unknown, string]>([
    ['an owner in the body', { ...definition, owner: 'mallory' }, 'invalid_body'],
    ['no mode', { title: 'x' }, 'invalid_body'],
    ['a list', [], 'invalid_body'],
    ['null', null, 'invalid_body'],
    ['an invalid action name', { ...definition, action_names: ['no spaces'] }, 'invalid_body'],
    ['a generic action name', { ...definition, action_names: ['Execute'] }, 'generic_action_name'],
    ['a star', { ...definition, action_names: ['*'] }, 'generic_action_name'],
  ])('are refused with %s', async (_, body, code) => {
    const world = await createWorld()
    const got = await answer(world, 'alice', 'PUT', '/sites/todo', body)
    expect([got.status, got.body.code]).toEqual([422, code])
    expect(await world.sites.get('todo')).toBeNull()
  })

  it('are put and deleted with a registry that is a class instance', async () => {
    const kept = createSiteRegistry()
    class Sites {
      readonly #kept = kept
      get = (siteId: string) => this.#kept.get(siteId)
      put(...input: Parameters<typeof kept.put>) {
        return this.#kept.put(...input)
      }
      delete(...which: Parameters<typeof kept.delete>) {
        return this.#kept.delete(...which)
      }
    }
    const world = await createWorld({ sites: new Sites() })
    expect((await answer(world, 'alice', 'PUT', '/sites/todo', definition)).status).toBe(201)
    expect((await answer(world, 'alice', 'DELETE', '/sites/todo')).status).toBe(204)
    expect(await kept.get('todo')).toBeNull()
  })

  it('cannot be declared over HTTP when the registry only reads', async () => {
    const world = await createWorld({ sites: { get: async () => null } })
    const got = await answer(world, 'alice', 'PUT', '/sites/todo', definition)
    expect([got.status, got.body.code]).toEqual([501, 'operation_absent'])
    expect((await answer(world, 'alice', 'DELETE', '/sites/todo')).status).toBe(501)
  })
})
