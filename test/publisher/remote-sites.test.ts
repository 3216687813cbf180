/** Holds the registry whose sites live at the relay. */
import { describe, expect, it } from 'vitest'
import { createRemoteSiteRegistry } from '../../src/publisher/index.js'
import { json, startHandRelay } from './relay.js'

const definition = { mode: 'cooperative' as const, title: null, event_names: ['note_changed'], action_names: [] }
const site = {
  ...definition,
  site_id: 'a/b',
  owner: 'alice',
  capability_profile: { action_invocation: false },
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
}

describe('the remote site registry', () => {
  it('puts a definition without its owner, which is the user that the relay authenticates', async () => {
    const { runtime, asked } = await startHandRelay((response, n) => json(response, n === 0 ? 201 : 200, site))
    const sites = createRemoteSiteRegistry({ runtime })
    await expect(sites.put({ ...definition, site_id: 'a/b', owner: 'local' })).resolves.toEqual({ created: true, site })
    await expect(sites.put({ ...definition, site_id: 'a/b', owner: 'local' })).resolves.toEqual({
      created: false,
      site,
    })
    expect(asked[0]).toMatchObject({
      method: 'PUT',
      path: '/relay/sites/a%2Fb',
      headers: { authorization: 'Bearer host' },
    })
    expect(asked[0]?.body).toEqual(definition)
  })

  it('gets a site, and null for one that is not there', async () => {
    const { runtime, asked } = await startHandRelay((response, n) =>
      n === 0 ? json(response, 200, site) : json(response, 404, { code: 'not_found' }),
    )
    const sites = createRemoteSiteRegistry({ runtime })
    await expect(sites.get('notes')).resolves.toEqual(site)
    await expect(sites.get('notes')).resolves.toBeNull()
    expect(asked[0]).toMatchObject({ method: 'GET', path: '/relay/sites/notes', body: undefined })
  })

  it('deletes, and says whether it was there', async () => {
    const { runtime } = await startHandRelay((response, n) =>
      n === 0 ? response.writeHead(204).end() : json(response, 404, { code: 'not_found' }),
    )
    const sites = createRemoteSiteRegistry({ runtime })
    await expect(sites.delete('notes')).resolves.toBe(true)
    await expect(sites.delete('notes')).resolves.toBe(false)
  })

  it.each([
    ['of a route that there is not', 404, '{"code":"route_not_found"}', 'route_not_found'],
    ['of another server', 404, '<h1>Not Found</h1>', 'unexpected_answer'],
    ['without a body', 404, '', 'unexpected_answer'],
    ['with another status', 403, '{"code":"not_found"}', 'not_found'],
  ])('takes an answer %s for no word on the site', async (_what, status, body, code) => {
    const { runtime } = await startHandRelay((response) => response.writeHead(status).end(body))
    const sites = createRemoteSiteRegistry({ runtime })
    const refusal = { name: 'RelayError', code, status }
    await expect(sites.get('notes')).rejects.toMatchObject(refusal)
    await expect(sites.delete('notes')).rejects.toMatchObject(refusal)
  })

  it('rejects with the code of the relay, after one request', async () => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 409, { code: 'owner_mismatch' }))
    const sites = createRemoteSiteRegistry({ runtime })
    const refusal = { name: 'RelayError', code: 'owner_mismatch', status: 409 }
    await expect(sites.put({ ...definition, site_id: 'notes', owner: 'x' })).rejects.toMatchObject(refusal)
    await expect(sites.get('notes')).rejects.toMatchObject(refusal)
    await expect(sites.delete('notes')).rejects.toMatchObject(refusal)
    expect(asked).toHaveLength(3)
  })

  it.each([
    {},
    [site],
    { ...site, owner: undefined },
    { ...site, event_names: 'note_changed' },
    { ...site, capability_profile: {} },
  ])('believes no site that is %j', async (body) => {
    const { runtime } = await startHandRelay((response) => json(response, 200, body))
    const sites = createRemoteSiteRegistry({ runtime })
    const odd = { name: 'RelayError', code: 'unexpected_answer', status: 200 }
    await expect(sites.get('notes')).rejects.toMatchObject(odd)
    await expect(sites.put({ ...definition, site_id: 'notes', owner: 'x' })).rejects.toMatchObject(odd)
  })

  it('says what of a site the relay could not read', async () => {
    const errors = [{ in: 'body', name: 'mode', reason: 'is missing' }]
    const { runtime } = await startHandRelay((response) => json(response, 422, { code: 'invalid_body', errors }))
    const given = createRemoteSiteRegistry({ runtime }).put({ ...definition, site_id: 'notes', owner: 'x' })
    await expect(given).rejects.toMatchObject({ errors, message: 'invalid_body (422): mode is missing' })
  })

  it.each(['..', '.', ''])('refuses the site id %j, which would leave the route', async (siteId) => {
    const { runtime, asked } = await startHandRelay((response) => json(response, 200, site))
    await expect(createRemoteSiteRegistry({ runtime }).delete(siteId)).rejects.toThrow(TypeError)
    expect(asked).toHaveLength(0)
  })
})
