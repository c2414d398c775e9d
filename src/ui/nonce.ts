/** Of this page: what the few components need that make a style element of their own. */
export const nonce = document.querySelector<HTMLMetaElement>('meta[name=csp-nonce]')?.content
