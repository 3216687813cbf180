/** Begins the page. */
import { render } from 'preact'
import { resetAuth, startPolling } from './answers.js'
import { App } from './app.js'
import { takeKey } from './key.js'
import { applyTheme } from './preferences.js'
import { forgetSamples } from './samples.js'

applyTheme()
takeKey()
startPolling()
// A link with a key, followed where the page is open already: before anybody looks at the address.
addEventListener('hashchange', () => {
  if (!takeKey()) return
  forgetSamples()
  resetAuth()
})
render(<App />, document.body)
