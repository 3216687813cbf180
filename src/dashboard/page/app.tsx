/** The frame of every page: which deployment, how fresh, where to go, and what stands in the middle. */
import type { JSX } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { hrefOf, pathWithQuery, useAddress } from './address.js'
import { resetAuth, setPaused, unavailableReason } from './answers.js'
import { urlOf } from './fetch-route.js'
import { usePulse } from './hooks.js'
import { Banner, incidentOf } from './incident.js'
import { hasSubmittedKey, setKey } from './key.js'
import { KeyList, useKeys } from './keys.js'
import { GROUPS, PAGES, pageForPath } from './pages.js'
import { Text } from './parts/text.js'
import { forgetSamples } from './samples.js'
import { countOf, durationText, timeOf } from './words.js'

const MODES: Record<string, string> = { shared_store: 'shared store', direct: 'one process' }

/** What a screen reader hears once, and the time that everybody else sees go on: the worst of what the page shows. */
function Freshness(): JSX.Element {
  const { capabilities, asOf, problem, isPaused, isRefused, isLate, isLoading, lacking, isWatching } = usePulse()
  if (incidentOf(capabilities) && !isLate && !problem) return <span class="fresh paused">not live</span>
  const lost = asOf === null ? problem?.title : `no answer for ${durationText(Date.now() - asOf)}`
  const parts = `${countOf(lacking)} answer${lacking === 1 ? '' : 's'} missing or old`
  const [name, heard, said] = isRefused
    ? ['paused', 'no key', 'no key']
    : isPaused
      ? ['paused', 'paused', 'paused']
      : isLate || problem
        ? ['late', 'no answer', lost]
        : lacking > 0
          ? ['late', 'answers missing or old', parts]
          : isLoading
            ? ['asking', 'asking', 'asking']
            : ['live', 'live', isWatching ? 'live' : 'asked every 2 s']
  return (
    <span class={`fresh ${name}`}>
      <span class="hidden" role="status">
        {heard}
      </span>
      {said}
      {asOf !== null && said !== parts && ` · as of ${timeOf(asOf)}`}
    </span>
  )
}

const Navigation = ({ path }: { path: string }): JSX.Element => (
  <nav class="views" aria-label="Views">
    {GROUPS.map(([name, paths]) => {
      const open = paths.filter((to) => !unavailableReason(to))
      return (
        <div key={name}>
          {name && open.length > 0 && <h2>{name}</h2>}
          {open.map((to) => {
            const isHere = to === path || (to !== '/' && path.startsWith(`${to}/`))
            return (
              <a key={to} href={hrefOf(to)} {...(isHere && { 'aria-current': 'page' as const })}>
                {PAGES[to]?.title}
              </a>
            )
          })}
        </div>
      )
    })}
  </nav>
)

/** The same question for a terminal. */
const Curl = ({ url }: { url: string }): JSX.Element => (
  <p class="curl">
    <code>
      <Text value={`curl -H "X-Admin-Key: $KEY" '${url.replaceAll("'", '%27')}'`} />
    </code>
  </p>
)

/** Asks for the administrator's key. */
function KeyForm({ wasRefused }: { wasRefused: boolean }): JSX.Element {
  const [given, setGiven] = useState('')
  const [remember, setRemember] = useState(false)
  const enter = (event: Event) => {
    event.preventDefault()
    forgetSamples()
    setKey(given, remember)
    resetAuth()
  }
  return (
    <form class="card key" onSubmit={enter}>
      <h1>{wasRefused ? 'The router refused' : 'A key is needed'}</h1>
      <p>
        It goes to the router alone, and stays in this page's memory: a reload asks for it again, unless it is kept.
        Where the host's own login lets you in, log in there and reload.
      </p>
      <label>
        The administrator's key, or your own
        <input
          type="password"
          autocomplete="current-password"
          required
          value={given}
          onInput={(event) => setGiven(event.currentTarget.value)}
        />
      </label>
      <label class="check">
        <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} />
        keep it until this tab is closed
      </label>
      <button type="submit">Look</button>
    </form>
  )
}

export function App(): JSX.Element {
  const address = useAddress()
  const { capabilities, isPaused, isRefused, isLate } = usePulse()
  const [isHelping, setHelping] = useState(false)
  const { deployment_id, mode } = capabilities?.extensions ?? {}
  const incident = incidentOf(capabilities)
  const name = String(deployment_id ?? document.title.split(' · ').at(-1))
  const url = urlOf(pathWithQuery(address.path, address.query))
  const page = url === null ? undefined : pageForPath(address.path)
  const title = page?.title ?? 'record'
  useLayoutEffect(() => {
    document.title = `${incident ? 'Incident: ' : ''}${title} · ${name}`
  }, [title, name, !incident])
  useLayoutEffect(() => scrollTo(0, 0), [address.path])
  useKeys({ pause: () => setPaused(!isPaused), help: () => setHelping(true) })
  return (
    <>
      {incident && <Banner incident={incident} />}
      <header class="top">
        <b>
          <Text value={name} />
        </b>
        <span class="dim">{MODES[String(mode)]}</span>
        <Freshness />
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'go on' : 'pause'}
        </button>
        <button type="button" onClick={() => setHelping(true)}>
          keys <kbd>?</kbd>
        </button>
      </header>
      {isRefused ? (
        <main>
          <KeyForm wasRefused={hasSubmittedKey()} />
        </main>
      ) : (
        <div class="body">
          <Navigation path={address.path} />
          <main class={isLate ? 'late' : ''}>
            {page ? (
              page.show(address)
            ) : (
              <h1>
                No page shows this: <Text value={address.path} />
              </h1>
            )}
            {url !== null && address.path !== '/' && <Curl url={url} />}
          </main>
        </div>
      )}
      {isHelping && <KeyList onClose={() => setHelping(false)} />}
    </>
  )
}
