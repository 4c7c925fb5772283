"""Which language a text is in, as far as that says which table of clusters fits.

    guess_language("Der Hund und die Katze sind nicht in dem Haus .".split() * 10)      # 'de'
    guess_language("O gato e o cão não estão na casa .".split() * 10)                   # 'pt'

Counted are short words that only one of the languages here has. A language must have enough of them, and several times
as many as any other: between relatives (Spanish, Catalan, Galician, Portuguese) no answer is better than a wrong one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

# The usual function words; those that two languages share are taken from both.
_WORDS = {
    "en": "the of and to is was that for with as are this which were from have has had been would their they his her "
    "she he but not you what when who there if about than will said it be by at on or an",
    "de": "der die das und den von zu mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat "
    "dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr "
    "durch man sein wurde sei ich wir",
    "es": "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque "
    "esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante fue ha había ser son era "
    "según está han",
    "fr": "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont la avec ses "
    "son aux cette mais nous vous été ou leur elle ont être même ces fait comme où je était",
    "it": "di e il la che in un a per è una sono con non del si da le dei nel alla della i al come anche più ha gli "
    "delle lo ma ed se nella dal questo alle essere ai dalla suo sua degli hanno era stato",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das à seu sua ou ser "
    "quando muito nos já está eu também só pelo pela até isso ela entre foi são tem às você",
    "nl": "de van het een en in is dat op te zijn met voor niet aan er om ook als dan maar bij nog uit wordt door naar "
    "heeft hij werd ze deze worden over geen kan hebben zich meer wel was had of tot haar hun wij ik je",
    "ca": "de la i a que el en les els per un una amb no del és va al dels ha com més es o seva seu aquest aquesta "
    "però també són molt quan fins tot ja pel pels als sense això hi han ens ser perquè",
    "gl": "de a o que e do da en os un para con non unha se as no dos por na á máis ao como das polo foi súa seu pola "
    "nos ou pero tamén ten está esta este hai é xa moi",
    "ro": "de și în a la cu pe că nu din o se care pentru este un mai sunt au fost sau prin după fi ce al ale unei cel "
    "dar aceasta acest lui ca însă",
    "da": "og i at det er en til på de der med af for den ikke som har et var han jeg fra vi om også men kan blev "
    "efter ved skal hvor hun være mere eller sig",
    "no": "og i det er på som en til av for at med de har ikke den et om var han jeg fra vi også men kan ble etter ved "
    "skal hvor hun være mer eller seg",
    "sv": "och i att det som en på är av för med den till inte har de ett om var han jag från vi också men kan efter "
    "vid ska där hon vara mer eller sig så",
    "fi": "ja on ei se että oli hän mutta ovat joka kun niin myös kuin sen mukaan tai jo vain ole hänen",
    "pl": "w i na z do się nie to że jest o od po za przez jak dla który są ale oraz jego był tym które może tak",
    "cs": "a v se na je že s z do o to jako za i pro po ve by od jsou byl které který ale podle také jeho",
    "tr": "ve bir bu da de için ile olarak çok daha olan gibi sonra kadar en ise değil ancak her ne",
    "hu": "a az és hogy nem is egy ez meg van de volt csak már el azt még mint vagy ki",
    "id": "yang dan di dari untuk dengan ini dalam pada tidak itu akan adalah ke oleh juga sebagai telah mereka",
    "af": "die van en in is het nie om te wat vir met op aan sy hy dat ook as was nog ons hulle deur",
    "lb": "an de déi den vun d' ass op mat fir e net dat ech hien gouf vum huet sinn eng och awer nach",
    "eu": "eta da du ez bat zen ere dira izan zuen hau egin baina dute dela beste gabe",
    "la": "et in est non ad cum ut quod qui sed si quae ex sunt per etiam enim esse ab",
    "eo": "la kaj de en estas al ne ke por kun sed li ŝi ĝi kiu tiu pri aŭ pli ankaŭ estis",
}
_seen = Counter(word for words in _WORDS.values() for word in {*words.split()})
_OF = {word: language for language, words in _WORDS.items() for word in words.split() if _seen[word] == 1}
_MOST = 200_000  # words that are looked at
_FEWEST = 15  # distinctive words that must be found
_SHARE = 0.04  # of all words
_TIMES = 4  # as many as of any other language


def guess_language(words: Iterable[str]) -> str | None:
    """The language's two letters, or None where that is not sure."""
    found: Counter[str] = Counter()
    total = 0
    for word, n in Counter(word for word, _ in zip(words, range(_MOST), strict=False)).items():
        total += n * any(map(str.isalpha, word))
        if (language := _OF.get(word.lower())) is not None:
            found[language] += n
    (best, n), (_, second) = (*found.most_common(2), ("", 0), ("", 0))[:2]
    return best if n >= max(_FEWEST, _SHARE * total, _TIMES * second) else None
