/** What every registry of sites promises. */
import { describe, expect, it } from 'vitest'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { SiteFilter, SiteInput, SiteInspector, SiteRegistry } from '../../src/internal/contract/sites.js'
import { ASK, walk } from './clock.js'

export const notes: SiteInput = {
  site_id: 'notes',
  owner: 'alice',
  mode: 'cooperative',
  title: 'Notes',
  event_names: ['note_changed'],
  action_names: ['add_note', 'archive_note'],
  capability_profile: { action_invocation: true },
}

export interface SitesUnderTest {
  sites: Inspected<SiteRegistry, SiteInspector>
  /** Moves the registry's clock. */
  advance(ms: number): void
  close(): Promise<void>
}

export interface SiteBounds {
  maxSites?: number
  maxSitesPerUser?: number
}

export function siteRegistryBattery(name: string, make: (bounds?: SiteBounds) => Promise<SitesUnderTest>): void {
  const using = async (work: (under: SitesUnderTest) => Promise<void>, bounds?: SiteBounds) => {
    const under = await make(bounds)
    try {
      await work(under)
    } finally {
      await under.close()
    }
  }

  describe(`the registry of sites over ${name}`, () => {
    it('keeps what was put, with times of its own, and forgets what was deleted', () =>
      using(async ({ sites, advance }) => {
        const first = await sites.put(notes)
        expect(first.created).toBe(true)
        expect(first.site).toEqual({ ...notes, created_at: expect.any(String), updated_at: first.site.created_at })
        expect(await sites.get('notes')).toEqual(first.site)
        advance(1_000)
        const second = await sites.put({ site_id: 'notes', owner: 'alice', mode: 'observe' })
        expect(second).toEqual({
          created: false,
          site: {
            site_id: 'notes',
            owner: 'alice',
            mode: 'observe',
            title: null,
            event_names: [],
            action_names: [],
            capability_profile: { action_invocation: false },
            created_at: first.site.created_at,
            updated_at: new Date(Date.parse(first.site.created_at) + 1_000).toISOString(),
          },
        })
        expect(await sites.delete('notes')).toBe(true)
        expect(await sites.delete('notes')).toBe(false)
        expect(await sites.get('notes')).toBeNull()
      }))

    it('never replaces or deletes the site of another owner', () =>
      using(async ({ sites }) => {
        const { site } = await sites.put(notes)
        await expect(sites.put({ ...notes, owner: 'mallory' })).rejects.toMatchObject({ code: 'owner_mismatch' })
        expect(await sites.delete('notes', { owner: 'mallory' })).toBe(false)
        expect(await sites.get('notes')).toEqual(site)
        await expect(async () => sites.delete('notes', { ownr: 'mallory' } as object)).rejects.toMatchObject({
          code: 'invalid_input',
          detail: 'Unknown field "ownr". Did you mean "owner"?',
        })
        expect(await sites.delete('notes', { owner: 'alice' })).toBe(true)
      }))

    it.each([
      'execute',
      'EXEC',
      'Eval',
      'run',
      'invoke',
      'CALL',
      'command',
      '*',
    ])('refuses %s, which would be an action for anything', (action) =>
      using(async ({ sites }) => {
        const put = sites.put({ ...notes, action_names: ['add_note', action] })
        await expect(put).rejects.toMatchObject({ code: 'generic_action_name' })
        expect(await sites.get('notes')).toBeNull()
      }))

    it.each<[string, Partial<SiteInput>]>([
      ['an id that is no path segment', { site_id: 'a/b' }],
      ['the id ..', { site_id: '..' }],
      ['an id of 257 bytes', { site_id: 'x'.repeat(257) }],
      ['an id with a zero-width space', { site_id: 'a\u200bb' }],
      ['an action name with a space', { action_names: [' ok'] }],
      ['an action name with a zero-width space', { action_names: ['ok\u200b'] }],
      ['an event name with a line break', { event_names: ['a\nb'] }],
      ['an event name of 129 characters', { event_names: ['a'.repeat(129)] }],
      ['an unknown mode', { mode: 'both' as 'observe' }],
      ['an unknown capability', { capability_profile: { anything: true } as object }],
    ])('refuses %s', (_, change) =>
      using(async ({ sites }) => {
        await expect(sites.put({ ...notes, ...change })).rejects.toMatchObject({ code: 'invalid_input' })
      }))

    it('refuses an unknown field by name, a nested one with its path', () =>
      using(async ({ sites }) => {
        for (const [change, detail] of [
          [{ actions: ['a'] }, /^Unknown field "actions"\. Valid fields: mode, title, event_names, /],
          [
            { capability_profile: { action_invocations: true } },
            /^Unknown field "capability_profile\.action_invocations"\. Did you mean "capability_profile\.action_invocation"\?$/,
          ],
        ] as const)
          await expect(sites.put({ ...notes, ...change } as never)).rejects.toMatchObject({
            code: 'invalid_input',
            detail: expect.stringMatching(detail),
          })
      }))

    const put = ({ sites }: SitesUnderTest, owner: string, n: number) =>
      sites.put({ ...notes, site_id: `${owner}-${n}`, owner })

    it('refuses an owner at its limit, and no other owner', () =>
      using(
        async (under) => {
          for (let n = 0; n < 3; n++) await put(under, 'mallory', n)
          await expect(put(under, 'mallory', 3)).rejects.toMatchObject({ code: 'capacity_exceeded' })
          expect((await put(under, 'mallory', 2)).created).toBe(false)
          expect((await put(under, 'alice', 0)).created).toBe(true)
          expect(await under.sites.delete('mallory-0')).toBe(true)
          expect((await put(under, 'mallory', 3)).created).toBe(true)
        },
        { maxSites: 5, maxSitesPerUser: 3 },
      ))

    it('limits one owner to a tenth of the capacity by default', () =>
      using(
        async (under) => {
          for (let n = 0; n < 3; n++) await put(under, 'mallory', n)
          await expect(put(under, 'mallory', 3)).rejects.toMatchObject({ code: 'capacity_exceeded' })
          expect((await put(under, 'alice', 0)).created).toBe(true)
        },
        { maxSites: 30 },
      ))

    it('refuses new sites of all owners when full', () =>
      using(
        async (under) => {
          for (let n = 0; n < 3; n++) await put(under, `u${n}`, 0)
          await expect(put(under, 'alice', 0)).rejects.toMatchObject({ code: 'capacity_exceeded' })
        },
        { maxSites: 3 },
      ))

    it.each([Number.NaN, 0, -1, 1.5, Number.POSITIVE_INFINITY])('is not made with a bound of %d', async (bound) => {
      await expect(make({ maxSites: bound })).rejects.toThrow(RangeError)
      await expect(make({ maxSitesPerUser: bound })).rejects.toThrow(RangeError)
    })

    it('lists what is declared as it is now, by owner and mode, and nothing that was deleted', () =>
      using(async (under) => {
        const { inspector } = under.sites
        const list = async (filter: SiteFilter = {}) => {
          const listed = await walk((page) => inspector.listSites(filter, page, ASK), 2)
          return listed.map(({ site_id }) => site_id).sort()
        }
        expect(await list()).toEqual([])
        for (const owner of ['alice', 'bob', 'a/b'])
          for (let n = 0; n < 4; n++) await put(under, owner.replace('/', '-'), n)
        const { site } = await under.sites.put({ ...notes, site_id: 'alice-1', owner: 'alice', mode: 'observe' })
        expect(await under.sites.delete('alice-2')).toBe(true)
        expect(await list({ owner: 'alice' })).toEqual(['alice-0', 'alice-1', 'alice-3'])
        expect(await list({ mode: 'observe' })).toEqual(['alice-1'])
        expect(await list({ owner: 'bob', mode: 'observe' })).toEqual([])
        expect(await list({ owner: 'missing' })).toEqual([])
        expect(await list()).toHaveLength(11)
        expect(await inspector.getSite('alice-1', ASK)).toEqual({
          ...site,
          sessions: null,
          last_event_at: null,
          last_position: null,
        })
        for (const id of ['alice-2', '__proto__']) expect(await inspector.getSite(id, ASK)).toBeNull()
        // A site that comes back is a new one.
        await put(under, 'alice', 2)
        expect(await list({ owner: 'alice' })).toHaveLength(4)
      }))

    it('answers a plain miss for names of the language', () =>
      using(async ({ sites }) => {
        for (const id of ['__proto__', 'constructor', 'toString']) {
          expect(await sites.get(id)).toBeNull()
          expect(await sites.delete(id)).toBe(false)
        }
      }))
  })
}
