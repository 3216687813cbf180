/** What JSX becomes: the bundler puts these two where they are used, which makes a smaller script than the JSX runtime does. */
export { Fragment, h } from 'preact'
