"""Which language a text is in: sure of those that there are clusters of, and of relatives that they are others."""

from __future__ import annotations

import pytest

from sparsezo.tasks.chunking.io.languages import guess_language

TEXTS = {
    "en": "The mayor of the town said on Monday that they would not close the school , but the parents were not sure "
    "if it was true . She has been there for two years , and he will be back when the work is done .",
    "de": "Der Bürgermeister der Stadt sagte am Montag , dass die Schule nicht geschlossen wird , aber die Eltern sind "
    "noch nicht sicher . Sie ist seit zwei Jahren dort und hat auch mit einem Lehrer über das neue Haus gesprochen .",
    "es": "El alcalde de la ciudad dijo el lunes que no van a cerrar la escuela , pero los padres y las madres no "
    "están muy seguros . Su hermana vive allí desde hace dos años y también trabaja sin parar cuando hay más gente .",
    "fr": "Le maire de la ville a dit lundi que l' école ne sera pas fermée , mais les parents ne sont pas sûrs . Elle "
    "est là depuis deux ans avec ses enfants et nous avons été dans une maison pour les vacances .",
    "it": "Il sindaco della città ha detto lunedì che la scuola non sarà chiusa , ma i genitori non sono sicuri . "
    "Anche gli insegnanti hanno parlato della casa nel centro , più bella di quella che era stata venduta .",
    "pt": "O prefeito da cidade disse na segunda-feira que a escola não vai fechar , mas os pais não estão certos . "
    "Ela já mora lá há dois anos e também trabalha muito quando ele não está em casa , até às dez horas .",
    "nl": "De burgemeester van de stad zei maandag dat de school niet wordt gesloten , maar de ouders zijn nog niet "
    "zeker . Zij woont er al twee jaar en heeft ook met een leraar over het nieuwe huis gesproken , bij de kerk .",
    "ca": "L' alcalde de la ciutat va dir dilluns que l' escola no tancarà , però els pares no n' estan segurs . La "
    "seva germana hi viu des de fa dos anys i també treballa molt amb els nens d' aquest barri fins al vespre .",
    "gl": "O alcalde da cidade dixo o luns que a escola non vai pechar , pero os pais non están seguros . A súa irmá "
    "vive alí desde hai dous anos e tamén traballa moi ben cunha mestra que xa é máis vella .",
    "sv": "Borgmästaren i staden sade på måndagen att skolan inte ska stängas , men föräldrarna är inte säkra . Hon "
    "har bott där i två år och jag har också talat med en lärare från byn om ett nytt hus för barnen .",
    "pl": "Burmistrz miasta powiedział w poniedziałek , że szkoła nie zostanie zamknięta , ale rodzice nie są pewni . "
    "Jego siostra , który jest tam od dwóch lat , rozmawiała przez telefon tak jak może się tylko dla dzieci .",
    "tr": "Belediye başkanı pazartesi günü okulun kapanmayacağını söyledi , ancak aileler bu konuda çok emin değil . "
    "Bir öğretmen ile yeni ev için konuştu ve daha sonra bir yıl kadar orada yaşadı , ama olan oldu gibi .",
}


@pytest.mark.parametrize("language", TEXTS)
def test_twelve_languages(language):
    """Ten times the same: it is not the number of words that is to be tested."""
    assert guess_language(TEXTS[language].split() * 10) == language


def test_in_capitals():
    assert guess_language(TEXTS["de"].upper().split() * 10) == "de"


@pytest.mark.parametrize("relatives", [("es", "ca"), ("es", "pt"), ("en", "nl"), ("de", "nl"), ("en", "es")])
def test_a_text_in_two_languages_is_neither(relatives):
    one, other = (TEXTS[language].split() for language in relatives)
    assert guess_language((one + other) * 10) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the dog and the cat",  # too short
        "Мэр города сказал в понедельник что школа не закроется но родители не уверены " * 20,
        "x1 y2 z3 12.5 , . - " * 50,
        "Acme Corp Ltd London Paris Madrid Berlin 1996 " * 50,  # names alone
    ],
)
def test_not_sure(text):
    assert guess_language(text.split()) is None


def test_much_of_the_text_must_be_of_the_language():
    """Quotations in English do not make a text English."""
    other = "vlam grontu pesk anolu brifat dremon keltas ovi " * 10
    assert guess_language((TEXTS["en"] + " " + other * 20).split() * 3) is None


@pytest.mark.data
@pytest.mark.parametrize(("path", "language"), [("conll2002/esp.train.gz", "es"), ("conll2000/train.txt.gz", "en")])
def test_of_real_text(real_data, path, language):
    from sparsezo.tasks.chunking.io.conll import read_conll

    words = read_conll(real_data / path).columns[0]
    assert guess_language(words) == language
    assert all(guess_language(words[k : k + 1000]) == language for k in range(0, 50_000, 1000))
