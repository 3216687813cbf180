/** Restricts what callers see: all users, some users, or nothing. `node --test examples/authorization.mjs` */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apiKeyAuth, createDiagnosticsRouter, scopeInspectors } from 'relayscope'
import { createFakeInspectors } from 'relayscope/testing'

const inspectors = createFakeInspectors({
  contexts: [{ user_id: 'mia' }, { user_id: 'noah' }, { user_id: 'olga' }],
  delivery: {},
})

// #region authorize
const TEAMS = new Map([['support', ['mia', 'noah']]])

const router = createDiagnosticsRouter({
  inspectors,
  auth: apiKeyAuth({ ada: 'key-of-ada', support: ['new-key', 'old-key'], intern: 'key-of-the-intern' }),
  authorize({ principal, route }) {
    if (principal.name === 'ada') return true
    if (route === '/history/messages') return false
    return { user_ids: TEAMS.get(principal.name) ?? [] }
  },
})
// #endregion

// #region scope
const team = scopeInspectors(inspectors, { user_ids: ['mia', 'noah'] })
const routerOfTheTeam = createDiagnosticsRouter({ inspectors: team, auth: apiKeyAuth('key-of-the-team') })
// #endregion

async function usersSeen(router, key) {
  const response = await router(new Request('http://relay/contexts?order=oldest', { headers: { 'x-admin-key': key } }))
  return (await response.json()).items.map(({ user_id }) => user_id)
}

test('callers see the users that they are allowed to see', async () => {
  assert.deepEqual(await usersSeen(router, 'key-of-ada'), ['mia', 'noah', 'olga'])
  assert.deepEqual(await usersSeen(router, 'old-key'), ['mia', 'noah'])
  assert.deepEqual(await usersSeen(router, 'key-of-the-intern'), [])
  assert.deepEqual(await usersSeen(routerOfTheTeam, 'key-of-the-team'), ['mia', 'noah'])
})
