/** The frame of every page: the deployment, freshness, navigation and the current view. */
import type { JSX } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import type { FindingSummary } from '../../internal/views/findings/finding.js'
import { type Address, hrefOf, pathWithQuery, useAddress } from './address.js'
import {
  CHANGES,
  hasInstants,
  NOT_SCOPABLE,
  openedIncident,
  type PollStatus,
  pollStatus,
  queryState,
  recordedPath,
  resetAuth,
  setPaused,
  unavailableReason,
} from './answers.js'
import { FEEDS, isShown, useFeed } from './feed.js'
import { currentInstant, urlOf } from './fetch-route.js'
import { useAnswer, useLook } from './hooks.js'
import { Banner, NotRecorded, TimeBand } from './incident.js'
import { shownIncident } from './instants.js'
import { hasSubmittedKey, setKey } from './key.js'
import { KeyList, useKeys } from './keys.js'
import { arrive, focusHeading, startNavigation } from './navigation.js'
import { PAGES, type Page, pageForPath } from './pages.js'
import { Tools } from './parts/copy.js'
import { plainText, Text } from './parts/text.js'
import { hintOf } from './parts/value.js'
import { currentTheme, isUtc, nextTheme, setUtc, zoneName } from './preferences.js'
import { remember, Search } from './search.js'
import { isAlarming } from './views/attention.js'
import { countIn } from './views/headline.js'
import { countOf, durationText, timeOf } from './words.js'

/** The freshness of the page, that is of its worst part: a tone, a text for screen readers, and the visible text. */
function freshnessOf(pollStatus: PollStatus): readonly [tone: string, heard: string, caption: string] {
  const { asOf, problem, isPaused, isRefused, isLate, isLoading, lacking } = pollStatus
  if ((shownIncident() || currentInstant() !== null) && !isLate && !problem && !isRefused)
    return ['paused', 'not live', 'not live']
  if (isRefused) return ['paused', 'no key', 'no key']
  if (isPaused) return ['paused', 'paused', 'paused']
  if (isLate || problem) {
    const lost = asOf === null ? problem?.title : `no answer for ${durationText(Date.now() - asOf)}`
    return ['late', 'no answer', lost ?? 'no answer']
  }
  if (lacking > 0)
    return ['late', 'answers missing or old', `${countOf(lacking)} answer${lacking === 1 ? '' : 's'} missing or old`]
  if (isLoading) return ['asking', 'loading', 'loading']
  return ['live', 'live', 'live']
}

function Freshness(): JSX.Element {
  const [shownAsOf, isRefused, tone, heard, caption] = useLook(() => {
    const now = pollStatus()
    const { asOf, isRefused, isPaused, lacking } = now
    const [tone, heard, caption] = freshnessOf(now)
    const isAsOf = heard !== 'not live' && (isPaused || tone !== 'late' || lacking === 0)
    return [isAsOf ? asOf : null, isRefused, tone, heard, caption] as const
  })
  // Whatever the page is about: a source that fails concerns it.
  useAnswer(isRefused ? null : '/sources')
  return (
    <span class={`fresh ${tone}`}>
      <span class="hidden" role="status">
        {heard}
      </span>
      <span>{caption}</span>
      {shownAsOf !== null && <span class="at"> · as of {timeOf(shownAsOf)}</span>}
    </span>
  )
}

const isWithin = (to: string, path: string) =>
  to === path || (to !== '/' && path.startsWith(`${to}/`)) || pageForPath(path)?.parent === to

/** The pages of families that are fed; the others are behind "More", each with the call that feeds it. */
function Navigation({ path }: { path: string }): JSX.Element {
  const { value, isOld } = useAnswer<FindingSummary>('/findings/summary')
  const count = !isOld && value && countIn(value)
  const [isAlarm] = useLook(() => [count && value && isAlarming(value)])
  const feed = useFeed()
  const linksTo = (paths: readonly string[]) =>
    paths
      .filter((to) => !unavailableReason(to))
      .map((to) => (
        <a
          key={to}
          href={hrefOf(to)}
          data-count={(to === '/findings' && count) || undefined}
          class={isAlarm ? 'alarm' : ''}
          aria-current={isWithin(to, path) ? 'page' : undefined}
          {...hintOf(PAGES[to]?.title ?? '')}
        >
          {PAGES[to]?.title}
        </a>
      ))
  const unfed = FEEDS.filter((_, i) => feed[i] === 'unfed')
  const isThere = unfed.some(({ paths }) => paths.some((to) => isWithin(to, path)))
  return (
    <nav class="views" aria-label="Views">
      {linksTo(['/', '/findings', CHANGES])}
      {/* All at once: none moves for another one. */}
      {!feed.includes('unknown') && (
        <>
          {FEEDS.map(({ name, paths }, i) => isShown(feed[i]) && <div key={name}>{linksTo(paths)}</div>)}
          <div>{linksTo(['/sources'])}</div>
          {unfed.length > 0 && (
            <details open={isThere}>
              <summary>More</summary>
              {unfed.map(({ name, paths, by }) => (
                <div key={name}>
                  {linksTo(paths)}
                  <small>
                    fed by <code>{by}</code>
                  </small>
                </div>
              ))}
            </details>
          )}
        </>
      )}
    </nav>
  )
}

const focus = (field: HTMLElement | null) => field?.focus()

/** Asks for the administrator's key. */
function KeyForm({ wasRefused }: { wasRefused: boolean }): JSX.Element {
  const [given, setGiven] = useState('')
  const [remember, setRemember] = useState(false)
  const enter = (event: Event) => {
    event.preventDefault()
    setKey(given, remember)
    resetAuth()
  }
  return (
    <form class="card key" onSubmit={enter}>
      <h1>{wasRefused ? 'The router refused the key' : 'A key is needed'}</h1>
      <p>It is sent to the router only. If your relay has its own login, log in there and reload.</p>
      <label>
        Administrator key, or your own
        <input
          type="password"
          autocomplete="current-password"
          required
          ref={given === '' ? focus : null}
          value={given}
          onInput={(event) => setGiven(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} />
        keep it until this tab is closed
      </label>
      <button type="submit">Open</button>
    </form>
  )
}

const [UNKNOWN_ICON, OK_ICON, BAD_ICON] = (document.documentElement.dataset.icons ?? '').split(' ')
const iconOf = (tone: string) => (tone === 'live' ? OK_ICON : tone === 'late' ? BAD_ICON : UNKNOWN_ICON)

/** Shows the state of the page where a tab shows it: as its title and its icon. */
function useTab(title: string, tone: string): void {
  useLayoutEffect(() => {
    document.title = title
  }, [title])
  useLayoutEffect(() => {
    const link = document.querySelector<HTMLLinkElement>('link[rel=icon]')
    const href = iconOf(tone)
    if (link && href) link.href = href
  }, [tone])
}

/** What a page is about: its title, or which record, and where that stands. */
function subjectOf(page: Page | undefined, { path, query }: Address): string {
  if (!page?.id) return page?.title ?? 'not found'
  const record = queryState(pathWithQuery(path, query)).value as Record<string, unknown> | null
  const ended = (record?.terminal as { state?: string } | null | undefined)?.state
  const state = ended ?? record?.status ?? (typeof record?.state === 'string' ? record.state : '')
  return plainText(`${page.noun} ${page.id({ path, query })} ${state}`.trim())
}

/** All that is shown besides answers; at midnight every time gets its date. */
const useFrame = (page: Page | undefined, address: Address) =>
  useLook(() => {
    const now = pollStatus()
    const { capabilities, isPaused, isRefused, isLate } = now
    const { value, problem } = queryState('/')
    const [tone] = freshnessOf(now)
    const today = new Date().getDate()
    const instant = currentInstant()
    const unrecorded = instant === null ? null : queryState(recordedPath(instant)).problem
    const seen = [tone, capabilities, isPaused, isRefused, isLate, subjectOf(page, address), unrecorded] as const
    return [...seen, value, problem, today, shownIncident()] as const
  })

const THEMES: Record<string, string> = { '': '◐', light: '☀', dark: '☾' }

export function App(): JSX.Element {
  const address = useAddress()
  const [isHelping, setHelping] = useState(false)
  const redraw = useState({})[1]
  const url = urlOf(pathWithQuery(address.path, address.query))
  const page = url === null ? undefined : pageForPath(address.path)
  const [tone, capabilities, isPaused, isRefused, isLate, subject, unrecorded] = useFrame(page, address)
  const { asOf } = pollStatus()
  const { deployment_id } = capabilities?.extensions ?? {}
  const instant = currentInstant()
  useAnswer(instant === null ? null : recordedPath(instant))
  const incident = openedIncident() && (shownIncident() ?? openedIncident())
  const [isChoosing, setChoosing] = useState(false)
  const name = String(deployment_id ?? document.title.split(' · ').at(-1))
  const mark = tone === 'late' ? '▲ ' : isPaused ? '⏸ ' : ''
  useTab(
    `${incident ? 'Incident: ' : instant === null ? '' : `As of ${timeOf(instant)}: `}${mark}${subject} · ${plainText(name)}`,
    tone,
  )
  useLayoutEffect(() => startNavigation(address.path), [])
  useLayoutEffect(() => {
    arrive(address.path)
    const id = page?.id?.(address)
    if (id) remember({ kind: page?.noun ?? '', name: id, href: hrefOf(address.path, address.query) })
  }, [address])
  useKeys({ pause: () => instant === null && setPaused(!isPaused), help: () => setHelping(true), isOff: isRefused })
  const choose = (change: () => void) => () => {
    change()
    redraw({})
  }
  const theme = currentTheme()
  return (
    <>
      {incident && <Banner incident={incident} />}
      <button type="button" class="skip" onClick={focusHeading}>
        Skip to content
      </button>
      <header class="top">
        <a class="brand" href={hrefOf('/')}>
          <b>
            <Text value={name} />
          </b>
          {unavailableReason('/sources')?.code === NOT_SCOPABLE && <span class="dim"> · some users only</span>}
        </a>
        {!isRefused && <Search />}
        <Freshness />
        <button
          type="button"
          class="zone"
          aria-label={`times in ${zoneName()}, change`}
          title={`Times are ${isUtc() ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone}`}
          onClick={choose(() => setUtc(!isUtc()))}
        >
          {zoneName()}
        </button>
        <button
          type="button"
          class="theme"
          aria-label={`theme: ${theme || 'system'}, change`}
          onClick={choose(nextTheme)}
        >
          {THEMES[theme]}
        </button>
        {hasInstants() && !incident && (
          <button type="button" aria-expanded={isChoosing || instant !== null} onClick={() => setChoosing(!isChoosing)}>
            earlier
          </button>
        )}
        <button type="button" aria-pressed={isPaused} disabled={instant !== null} onClick={() => setPaused(!isPaused)}>
          pause
        </button>
        <button type="button" class="help" onClick={() => setHelping(true)}>
          keys <kbd>?</kbd>
        </button>
      </header>
      {isPaused && (
        <aside class="bar" aria-label="Paused">
          Paused{asOf !== null && <> at {timeOf(asOf)}</>}: nothing is fetched.{' '}
          <button type="button" onClick={() => setPaused(false)}>
            Resume
          </button>
        </aside>
      )}
      {!isRefused && !incident && (isChoosing || instant !== null) && <TimeBand onClose={() => setChoosing(false)} />}
      {isRefused ? (
        <main>
          <KeyForm wasRefused={hasSubmittedKey()} />
        </main>
      ) : (
        <div class="body">
          <Navigation path={address.path} />
          <main class={isLate ? 'late' : ''}>
            {url !== null && page && !unrecorded && !['/', CHANGES].includes(address.path) && (
              <Tools
                url={url}
                value={() => queryState(pathWithQuery(address.path, address.query)).value}
                isList={!page.id}
              />
            )}
            {page?.parent && <Crumbs page={page} address={address} />}
            {unrecorded ? (
              <NotRecorded problem={unrecorded} />
            ) : page ? (
              page.show(address, name)
            ) : (
              <h1>
                No page shows this: <Text value={address.path} />
              </h1>
            )}
          </main>
        </div>
      )}
      {isHelping && <KeyList onClose={() => setHelping(false)} />}
    </>
  )
}

/** Where a record stands: its list, whose it is, and its id. */
function Crumbs({ page, address }: { page: Page; address: Address }): JSX.Element {
  const user_id = address.query.get('user_id')
  return (
    <nav class="crumbs" aria-label="Path">
      <a href={hrefOf(page.parent as string)}>{PAGES[page.parent as string]?.title}</a>
      {user_id && (
        <a href={hrefOf(`/users/${encodeURIComponent(user_id)}/summary`)}>
          <Text value={user_id} />
        </a>
      )}
      {page.id && (
        <span aria-current="page">
          <Text value={page.id(address)} />
        </span>
      )}
    </nav>
  )
}
