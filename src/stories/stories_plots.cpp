#include "stories/stories_text.h"

namespace sextant {

std::string_view story_words() {
  return R"(
hero(name, he, him, his, himself, kind):
  Mia/she/her/her/herself/girl | Ben/he/him/his/himself/boy | Lily/she/her/her/herself/girl
  Sam/he/him/his/himself/boy | Ella/she/her/her/herself/girl | Finn/he/him/his/himself/boy
  Ruby/she/her/her/herself/girl | Oscar/he/him/his/himself/boy | Zoe/she/her/her/herself/girl
  Felix/he/him/his/himself/boy | Maya/she/her/her/herself/girl | Noah/he/him/his/himself/boy
friend(name, he, him, his, himself, kind):
  Tom/he/him/his/himself/boy | Anna/she/her/her/herself/girl | Max/he/him/his/himself/boy
  Emma/she/her/her/herself/girl | Leo/he/him/his/himself/boy | Nora/she/her/her/herself/girl
  Jack/he/him/his/himself/boy | Clara/she/her/her/herself/girl | Hugo/he/him/his/himself/boy
  Rosa/she/her/her/herself/girl | Omar/he/him/his/himself/boy | Alice/she/her/her/herself/girl
relative: grandmother | father | mother | grandfather | aunt | uncle | sister | brother | cousin
weather: sunny | warm | bright | windy | quiet | cool | misty | cold | rainy | golden
daytime: morning | afternoon | day | evening
trait: kind | curious | brave | clever | gentle | cheerful | patient | honest | careful | helpful | thoughtful | lively
sad: sad | upset | worried | unhappy | disappointed
happy: happy | proud | glad | pleased | thankful | cheerful
beast: monster | ghost | dragon | giant | witch | troll | goblin | wizard
)";
}

std::string_view story_theme_classes() {
  return R"(
place(noun, at):
thing(noun, look):
animal(noun, look, did):
worker(noun, he, his):
spot:
skill(do, doing):
trouble(noun, broke, fixed):
scene:
food:
sound:
make(do, made, noun):
fun:
)";
}

std::vector<std::string_view> story_themes() {
  return {story_themes_of_nature(), story_themes_of_town(), story_themes_of_work()};
}

std::string_view story_plots() {
  return R"(
plot:
  [start] [view] [own] # [lose] [cry] [comfort] [search] [clue] [found] # [thanks] [treat] [close]
  [start] [hello] [view] # [stuck] [pity] [free] # [grateful] [treat] [close]
  [start] [hello] [view] # [noise] [guess] [peek] [reveal] # [laugh] [treat] [close]
  [start] [hello] [view] # [breaks] [dismay] [fix] [mended] # [praise] [treat] [close]
  [start] [hello] [wish] [fail] # [advice] [practise] # [success] [cheer] [close]
  [start] [hello] [view] [idea] # [agree] [work] [watch] [made] # [give] [treat] [close]
  [start] [view] [find] # [claim] [angry] [alone] [wise] # [sorry] [share] [close]
  [start] [hello] [view] # [weary] [offer] [toil] # [reward] [treat] [close]
  [arrive] [view_alone] [lonely] # [greet] [join] # [friends] [treat] [close]
  [start] [view] [contest] [train] # [great_day] [win] # [fair] [prize] [close]
)";
}

std::string_view story_beats() {
  return R"(
start:
  One [weather] [daytime], [hero] and [friend] went to the [place].
  One [weather] [daytime], [hero] went to the [place] with [hero.his] friend [friend].
  Once there was a [trait] [hero.kind] named [hero].
    / [hero.his] best friend was [friend], and they often met [place.at] the [place].
  [hero] was a [trait] [hero.kind] who loved the [place].
    / One [weather] [daytime], [hero.he] went there with [hero.his] friend [friend].
  It was a [weather] [daytime], and [hero] and [friend] were [place.at] the [place].
  [hero] and [friend] were best friends. / Every [daytime], they met [place.at] the [place].
hello:
  "What shall we do today?" asked [friend]. / "Let's have some fun," said [hero].
  They were both in a very good mood.
  "I am so glad that we came to the [place]," said [friend].
  "What a lovely [daytime]!" said [hero].
view:
  [scene].
  Together they [fun].
  They [fun] for a long time.
  It was lovely there, and [scene].
  They [fun] until they were tired.
  -

own:
  [hero] had brought [hero.his] [thing.look] [thing], a gift from [hero.his] [relative].
  In [hero.his] bag, [hero] carried a [thing.look] [thing].
  [hero] had a [thing.look] [thing] that [hero.he] took everywhere.
  That day, [hero] wanted to show [friend] [hero.his] new [thing].
lose:
  But when [hero] opened [hero.his] bag, the [thing] was gone!
  Then [hero] looked into [hero.his] bag. / The [thing] was not there!
  After a while, [hero] could not find the [thing] anywhere.
  Suddenly [hero] stopped. / The [thing] was gone!
cry:
  "Oh no, I have lost my [thing]!" cried [hero].
  [hero] was very [sad]. / "What is the matter?" asked [friend]. / "I have lost my [thing]," said [hero].
  "My [thing.look] [thing] is gone," said [hero] in a small voice.
  [hero] felt so [sad] that [hero.he] began to cry.
comfort:
  "Do not worry, we will find it together," said [friend].
  "Let's look for it," said [friend].
  "I will help you," said [friend], and [friend.he] took [hero.his] hand.
search:
  They looked [spot], but it was not there. / "Maybe it is gone for ever," said [hero].
  First they looked [spot]. / Then they looked [spot2].
  They asked the [worker], but [worker.he] had not seen it.
  They looked [spot], but they found nothing. / "We must not give up," said [friend].
clue:
  Just then, a [animal.look] [animal] came by. / It [animal.did].
  Then they saw a [animal.look] [animal] that [animal.did].
  Suddenly a [animal.look] [animal] [animal.did].
  -
found:
  [friend] looked [spot3], and there it was!
  At last they found the [thing.look] [thing]. / It lay [spot3].
  "Here it is!" shouted [friend], and [friend.he] pulled it out from [spot3].
  "I see something [spot3]!" shouted [friend]. / It was the [thing]!
thanks:
  "Thank you, you are a true friend," said [hero].
  [hero] was so [happy] that [hero.he] hugged [friend].
  "Thank you for your help," said [hero] with a big smile.
  [hero] promised to take better care of the [thing].

stuck:
  Then [hero] saw a [animal.look] [animal]. / It was stuck [spot].
  Suddenly they heard [sound]. / A [animal.look] [animal] was in trouble!
  A [animal.look] [animal] was caught, and it could not get out.
pity:
  "Poor little [animal]!" said [friend]. / "We must help it," said [hero].
  The [animal] was cold and afraid. / "Do not be afraid," whispered [hero].
  "We must help the [animal]," said [hero].
free:
  Very gently, [hero] pulled the [animal] out.
  They called for help, and together they set the [animal] free.
  With great care, they set the [animal] free.
  [friend] held the [animal] while [hero] set it free.
grateful:
  The [animal] [animal.did] to say thank you.
  From that day on, the [animal] followed [hero] everywhere.
  The next day, it came back and brought them a [thing.look] [thing]!
  The [animal] [animal.did], and they laughed.

noise:
  Suddenly they heard [sound]. / It came from [spot].
  "Did you hear that?" asked [friend]. / There was [sound]. / It came from [spot].
  All at once, [hero] heard something [spot].
guess:
  "What is it?" asked [hero]. / "Maybe it is a [beast]," whispered [friend].
  "I think it is a [beast]!" whispered [friend].
  [hero] was afraid. / "What if it is a [beast]?" [hero.he] whispered.
  [friend] wanted to run away, but [hero] was too curious.
peek:
  Slowly, [hero] crept closer and looked [spot].
  [hero] took a deep breath and looked [spot].
  Hand in hand, they tiptoed closer and looked [spot].
reveal:
  It was only a [animal.look] [animal]!
  There was no [beast] at all, only a [animal.look] [animal].
  Out came a [animal.look] [animal]. / It [animal.did].
  A [animal.look] [animal] looked at [hero.him] and [animal.did].
laugh:
  They laughed until their sides hurt.
  "Hello, little [animal]," said [hero].
  "You gave us a fright, little [animal]!" said [friend].
  From then on, the [animal] was their friend.

breaks:
  Suddenly the [trouble] [trouble.broke].
  But then something went wrong. / The [trouble] [trouble.broke].
  They were having fun when the [trouble] [trouble.broke].
dismay:
  "What shall we do now?" asked [hero].
  [hero] was [sad], but [friend] had an idea.
  "Can we mend it?" asked [friend]. / "Of course we can," said [hero].
  The [worker] was very [sad]. / "Who will help me now?" [worker.he] asked.
fix:
  [hero] and [friend] [trouble.fixed].
  So they rolled up their sleeves and [trouble.fixed].
  [hero] asked the [worker] for help. / Together they [trouble.fixed].
  [friend] watched while [hero] [trouble.fixed].
mended:
  Soon the [trouble] was as good as new.
  When they were done, the [trouble] looked better than before.
  "It is as good as new!" said [friend].
  It took a long time, but at last the [trouble] was mended.
praise:
  "Well done, you two!" said the [worker].
  The [worker] was very [happy]. / "What clever children you are," [worker.he] said.
  The [worker] thanked them with a smile.

wish:
  [hero] wanted to learn how to [skill].
  [friend] could [skill], but [hero] could not.
  "I want to learn how to [skill]," said [hero].
  More than anything, [hero] wished that [hero.he] could [skill].
fail:
  But it was not easy. / The first time [hero] tried, everything went wrong.
  [hero] tried and tried, but it did not work.
  "It is too hard," said [hero], and [hero.he] almost gave up.
  "I will never learn it," said [hero] with tears in [hero.his] eyes.
advice:
  The [worker] saw [hero] and smiled. / "Try again, but go slowly," [worker.he] said.
  "[skill.doing] takes time," said [friend].
  "Do not give up," said [friend]. / "I will help you."
  The [worker] showed [hero] how to do it.
practise:
  So [hero] practised [skill.doing] every day.
  [hero] kept trying, and [friend] cheered for [hero.him].
  Day after day, [hero] practised [skill.doing].
  All week long, [hero] practised with [friend].
success:
  At last [hero] could [skill] all by [hero.himself]!
  Then, one day, it worked! / "Look, I can [skill]!" [hero.he] shouted.
  One [weather2] [daytime2], [hero] could [skill] better than anyone else.
cheer:
  "I knew that you could do it!" said [friend].
  Everyone clapped, and [hero] was very [happy].
  "You did it!" cried [friend].
  The [worker] was very [happy] too. / "Well done!" [worker.he] said.
  [friend] clapped [friend.his] hands and jumped for joy.

idea:
  "Let's [make]!" said [hero].
  [hero] wanted to [make] for [hero.his] [relative].
  "I have an idea," said [hero]. / "We can [make]!"
  It was nearly the birthday of [hero.his] [relative], so they decided to [make].
agree:
  "What a wonderful idea!" said [friend].
  "That will be fun," said [friend].
  [friend] ran to fetch everything they needed.
  The [worker] gave them everything they needed.
work:
  They worked hard all [daytime].
  First they made a plan, and then they began.
  They worked and sang while [scene].
  It was hard work, but they did not give up.
watch:
  A [animal.look] [animal] watched them and [animal.did].
  -
made:
  At last they [make.made].
  Little by little, they [make.made].
  Together they [make.made]. / It was beautiful.
give:
  "This is the finest [make.noun] I have ever seen!" said [hero.his] [relative].
  [hero.his] [relative] loved the [make.noun].
  Everyone came to see the [make.noun].
  "I love it!" said [hero.his] [relative]. / [hero] was very [happy].

find:
  Something lay [spot]. / It was a [thing.look] [thing]!
  Then they found a [thing.look] [thing].
  "Look, there is something [spot]!" said [hero]. / It was a [thing.look] [thing].
claim:
  "I saw it first!" said [friend]. / "No, it is mine!" said [hero].
  They both wanted to keep the [thing].
  "Give it to me!" cried [friend]. / "No, it is mine!" said [hero].
  "It is mine!" they both shouted.
angry:
  They began to quarrel. / [friend] walked away without a word.
  [friend] turned away and did not say another word.
  [friend] was so angry that [friend.he] ran away.
alone:
  [hero] sat down all alone. / Without [friend], the [thing] was no fun.
  Now [hero] had the [thing], but [hero.he] was very [sad].
  [hero] looked at the [thing] and sighed.
wise:
  "A [thing] is nice, but a friend is better," thought [hero].
  The [worker] saw it all. / "You could take turns," [worker.he] said.
  "Is a [thing] worth more than a friend?" asked [hero.his] [relative].
sorry:
  "I am sorry," said [hero]. / "I am sorry too," said [friend].
  [hero] ran to [friend]. / "I am sorry," [hero.he] said. / "Let's share the [thing]."
  "Please be my friend again," said [hero], and [friend] smiled.
share:
  From then on, they shared the [thing].
  They took turns with the [thing], and both were [happy].

weary:
  The [worker] looked very tired. / "There is so much work to do, and I am all alone," [worker.he] said.
  There they met the [worker]. / "I have too much work to do," [worker.he] said.
  The [worker] had far too much work to do.
offer:
  "We can help you!" said [hero].
  "Let us help you," said [friend]. / "What shall we do first?" asked [hero].
  [hero] and [friend] did not think twice. / "We will help you," they said.
toil:
  [hero] carried the heavy boxes, and [friend] swept the floor. / Soon the work was done.
  They carried and swept and cleaned until everything was done.
  They worked side by side until the [daytime] was over.
reward:
  "Thank you, my friends," said the [worker]. / [worker.he] gave them [food].
  The [worker] was very [happy]. / As a reward, they got a [thing.look] [thing].
  "What would I do without you?" asked the [worker].

arrive:
  One [weather] [daytime], a new [friend.kind] came to the [place]. / [friend.his] name was [friend].
  One [weather] [daytime], [hero] met a new [friend.kind] [place.at] the [place]. / [friend.his] name was [friend].
view_alone:
  [scene].
  Some children [fun2] all [daytime].
  It was busy there, and [scene].
lonely:
  [friend] did not know anybody there. / [friend.he] was shy and [sad].
  Nobody played with [friend], and [friend.he] was very [sad].
  [friend] only watched while the others [fun].
greet:
  "Hello, my name is [hero]." / "Do you want to be my friend?"
  "Would you like to play with me?" asked [hero].
  "Come with me," said [hero], and [hero.he] held out [hero.his] hand.
  [hero] shared [food] with [friend].
join:
  Together they [fun].
  Then [hero] showed [friend] how to [skill].
  They [fun] until it was dark.
  "Do you want to see my [thing]?" asked [friend]. / It was a [thing.look] [thing].
friends:
  By the end of the [daytime], they were best friends.
  "I am so glad that I met you," said [friend].
  From then on, [friend] was not lonely any more.

contest:
  That week, there was a great contest. / Everyone wanted to see who could [skill] best.
  "There is a contest tomorrow," said the [worker]. / "We will see who can [skill] best."
train:
  [hero] and [friend] practised [skill.doing] all [daytime].
  "I want to win," said [hero]. / "So do I," said [friend].
great_day:
  When the contest began, everyone cheered.
  On the day of the contest, [scene].
  Then the great day came. / [hero] was very nervous.
win:
  [hero] did [hero.his] best, but [friend] was a little better.
  In the end, [friend] won the contest.
  [hero] and [friend] were both so good that nobody could choose.
  To the surprise of everyone, [hero] won!
fair:
  "Well done!" said [hero]. / "You were great too," said [friend].
  They shook hands and laughed.
  "It does not matter who wins," said [friend]. / "We had fun," said [hero].
prize:
  The prize was a [thing.look] [thing].
  "Let's share the prize," said [friend]. / It was [food].

treat:
  To celebrate, they shared [food].
  Then they sat down and had [food].
  [hero.his] [relative] gave them [food].
  "Are you hungry?" asked [hero]. / They shared [food].
  -
close:
  They went home tired but [happy2].
  It was the best [daytime] of the whole year.
  That night, [hero] told [hero.his] [relative] all about it.
  "Let's come back tomorrow," said [friend].
  From that day on, [hero] and [friend] were the best of friends.
  [hero] never forgot that [weather] [daytime] [place.at] the [place].
  And everyone agreed that [hero] was a very [trait] [hero.kind].
  When the stars came out, it was time to go home.
)";
}

}  // namespace sextant
